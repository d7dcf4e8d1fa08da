"""The history pipeline: history exported to Parquet, refined by SQL, and a report of it.

Bronze is what the reporting views have, day by day. Silver is each move in order and each stretch of waiting with its cause. Gold
are the marts that people read; the proofs say that no limit was exceeded. Nothing heavy is imported before it is asked for.
"""

from pathlib import Path

PIPELINE = Path(__file__).parent / "pipeline"  # the folder of its DAG
