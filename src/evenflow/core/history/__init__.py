"""What the history of a run says, as data for people and for programs."""
