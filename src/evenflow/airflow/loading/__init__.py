"""A DAG file of Airflow becomes specs: the SDK's objects are walked, and what has no counterpart is refused by name."""
