"""The parts of ``import_census.py``: pure functions and Spark transformations, each layer of the lake a module of its own."""
