"""A run in memory, without a database: for ``dag.test()`` and :mod:`evenflow.testing`."""
