"""Files that were written for Airflow 2 (and 1.10): their imports and settings mean what has taken their place, and say so."""
