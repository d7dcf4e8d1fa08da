"""What people type, and its meaning."""
