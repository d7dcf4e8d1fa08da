"""Between sockets and routes: the server, heads of requests within their limits, and how many requests there are."""
