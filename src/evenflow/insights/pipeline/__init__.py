"""A folder that a processor reads when the settings say so, with the file of the history pipeline in it."""
