"""What authors import, and what runs inside a task."""
