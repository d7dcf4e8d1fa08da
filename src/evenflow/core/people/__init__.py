"""People: what they may do, and where."""
