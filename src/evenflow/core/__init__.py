"""Decisions without input and output: no clock, no randomness and no third party."""
