"""Judges and rewrites files of Airflow by their text: nothing here imports Airflow."""
