"""Decisions without input and output: no clock, no chance and no third party."""
