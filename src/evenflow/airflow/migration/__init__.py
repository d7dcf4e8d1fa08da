"""Files of Airflow's, judged and rewritten by their text: nothing here imports Airflow."""
