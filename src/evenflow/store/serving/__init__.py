"""What the API and other services read and write, each in a transaction of its own."""
