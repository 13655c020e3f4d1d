"""Databases that reslice can publish on: a plain dict from the name in a connection to the module that knows it."""

ENGINES = {"duckdb": "reslice.engines.duckdb", "postgresql": "reslice.engines.postgres"}
