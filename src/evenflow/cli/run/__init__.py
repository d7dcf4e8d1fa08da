"""One run: where it goes on, what is shown of it, how it ended."""
