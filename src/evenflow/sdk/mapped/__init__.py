"""Tasks that run once for each of many values."""
