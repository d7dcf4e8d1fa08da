"""Messages between the API and the services that run user code."""
