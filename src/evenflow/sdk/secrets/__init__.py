"""Connections and variables: where they are looked for, and what of them nobody may read."""
