"""The history pipeline: history exported to Parquet, refined by SQL, and a report of it.

Bronze has the rows of the reporting views, day by day. Silver has each move in order and each time of waiting with its cause. Gold
has the marts that people read; the proofs show that no limit was exceeded. Heavy imports happen only when they are needed.
"""

from pathlib import Path

PIPELINE = Path(__file__).parent / "pipeline"  # the folder of its DAG
