"""What people ask: one module for each subject, with its routes and their answers."""
