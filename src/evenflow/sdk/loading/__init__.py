"""From a file to its DAGs, and what is said of one that cannot be loaded."""
