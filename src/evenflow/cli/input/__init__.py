"""What people type, and what is meant by it."""
