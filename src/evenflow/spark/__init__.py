"""Spark for tasks: the one place that imports pyspark, and only when a task asks for a session."""
