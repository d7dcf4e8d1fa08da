"""The names that authors import, and the code that runs inside a task."""
