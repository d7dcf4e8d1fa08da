"""The processor: finds DAG files, loads each in its own process, and delivers what they define."""
