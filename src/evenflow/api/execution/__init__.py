"""The API for services that run user code: claims, reports, beats, logs and questions of tries."""
