"""What a task may be: the operators and sensors that come with Evenflow, and their decorators."""
