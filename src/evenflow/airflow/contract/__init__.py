"""Airflow's Task Execution API, as its SDK speaks it, answered by Evenflow's own questions."""
