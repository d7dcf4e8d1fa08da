"""Output: tables and texts for people, JSON for programs."""
