"""A Spark Connect server for one machine: started, kept, limited and ended by a service that listens in its place."""
