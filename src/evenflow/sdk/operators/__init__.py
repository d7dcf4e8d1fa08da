"""The built-in operators and sensors, and their decorators."""
