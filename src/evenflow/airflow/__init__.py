"""Airflow's DAGs, as they are: its SDK and its providers run them, in an environment of their own, and Evenflow's engine decides.

What is here runs in that environment alone, beside the real package ``airflow``; no service of Evenflow imports either.
"""
