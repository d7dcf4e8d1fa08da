"""Settings, the home folder, the embedded PostgreSQL, and the one place where services are assembled."""
