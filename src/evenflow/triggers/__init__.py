"""The triggers that are built in."""
