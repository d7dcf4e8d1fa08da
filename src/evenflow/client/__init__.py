"""HTTP to the API: for people and their programs, and for services."""
