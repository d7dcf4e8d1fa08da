"""What stands for a DataFrame between tasks."""

from __future__ import annotations

import json

from evenflow.sdk import xcom
from evenflow.sdk.operators import isolated_child
from evenflow.sdk.operators.spark_frame import SparkFrame

SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true},{"name":"of","type":{"type":"array"}}]}'
FRAME = SparkFrame(url="s3://bucket/x/", name="7-a.parquet", schema=SCHEMA, rows=1_200, files=3)


def test_it_says_what_and_where_it_is() -> None:
    assert repr(FRAME) == "<DataFrame of 1,200 rows (id long, of array) in s3://bucket/x/7-a.parquet>"
    assert FRAME.columns == {"id": "long", "of": "array"}


def test_it_comes_back_as_it_was_and_is_a_dict_to_another_python() -> None:
    encoded = json.loads(xcom.dump([FRAME], "It"))
    assert xcom.decode(encoded, "It") == [FRAME]
    assert isolated_child.decode(encoded) == [FRAME.told()]
    assert xcom.mapped_length(encoded[0]) is None
