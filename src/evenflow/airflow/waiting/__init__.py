"""Triggers of deferred Airflow tasks, in a triggerer's host of an environment with Airflow."""
