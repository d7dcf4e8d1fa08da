"""Connections, rows and their types, notifications, and the schema."""
