"""The service that makes fleets of workers larger and smaller, and ends none that works."""
