"""Evenflow: a workflow scheduler on PostgreSQL."""
