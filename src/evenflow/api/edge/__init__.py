"""Between sockets and routes: the server, its limits on the heads of requests, and on the number of connections."""
