"""The code that runs inside a try."""
