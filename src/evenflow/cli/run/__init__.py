"""One run: where it runs, what is shown of it, how it ended."""
