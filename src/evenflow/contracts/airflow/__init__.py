"""Airflow's Task Execution API, as its SDK uses it, answered by Evenflow's own questions."""
