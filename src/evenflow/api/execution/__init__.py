"""What services ask that run user code: claims, reports, beats, logs and questions of tries."""
