"""A try of an Airflow task: the SDK's task runner and its supervisor, in a process of a worker's template."""
