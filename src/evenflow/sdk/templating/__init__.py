"""Templates, and what they may use."""
