"""Files for Airflow 2 (and 1.10): their imports and settings are translated to the present ones, with a warning."""
