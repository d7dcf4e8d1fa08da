"""What people ask: a module for each subject, its routes and what they answer."""
