"""Traces of runs, made from history and sent to a collector of OpenTelemetry."""
