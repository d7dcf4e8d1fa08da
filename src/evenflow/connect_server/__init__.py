"""A Spark Connect server of one machine's own: started, kept, capped and ended by a service that listens in its place."""
