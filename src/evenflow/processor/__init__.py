"""The processor: finds DAG files, loads each in a process of its own, and delivers what they define."""
