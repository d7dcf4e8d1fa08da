"""The worker: claims tries, runs each in a process of its own, and reports what became of them."""
