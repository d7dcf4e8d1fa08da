"""What a deferred task of Airflow waits for: its trigger, in a triggerer's host of an environment that has Airflow."""
