"""The API server: what people ask by REST, what workers ask, and the pages of the web UI."""
