"""The life of a service, its log, its metrics and its health."""
