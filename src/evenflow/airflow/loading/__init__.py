"""Turns a DAG file of Airflow into specs: walks the SDK's objects, and refuses by name what has no counterpart."""
