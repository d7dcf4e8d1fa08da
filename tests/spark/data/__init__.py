"""What tasks do with data, in one session for all tests of this package."""
