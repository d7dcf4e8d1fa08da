"""SQL, and the functions that send it."""
