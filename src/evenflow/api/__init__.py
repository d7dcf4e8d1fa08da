"""The API server: REST for people and tools, the execution API for workers, and the pages of the web UI."""
