"""Tasks that are called once for each of many values."""
