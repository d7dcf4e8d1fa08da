"""Connections and variables: where they are found, and which parts of them are secret."""
