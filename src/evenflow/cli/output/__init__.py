"""How things look: tables and texts for people, JSON for programs."""
