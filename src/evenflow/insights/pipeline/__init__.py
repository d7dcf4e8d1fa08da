"""The folder with the file of the history pipeline; a processor reads it when the settings say so."""
