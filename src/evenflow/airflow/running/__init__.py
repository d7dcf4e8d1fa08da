"""A try of an Airflow task: the SDK's supervisor around it, in a process of a worker's template."""
