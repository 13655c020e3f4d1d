"""Audit: read other people's writes, and say which of them cannot be run again.

Nothing that is read is run, and nothing is asked of a database or of a network.
"""
