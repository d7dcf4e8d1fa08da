"""Airflow's DAGs, unchanged: its SDK and its providers run them, in a separate environment, and Evenflow's engine decides.

These modules run only in that environment, beside the real package ``airflow``; no service of Evenflow imports either.
"""
