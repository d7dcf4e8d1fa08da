"""Moving house: what an Airflow 3 keeps in its database, brought here by the REST API."""
