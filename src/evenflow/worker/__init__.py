"""The worker: claims tries, runs each in its own process, and reports how it ended."""
