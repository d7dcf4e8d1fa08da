"""What runs inside a try."""
