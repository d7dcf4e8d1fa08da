"""Templates, and their functions."""
