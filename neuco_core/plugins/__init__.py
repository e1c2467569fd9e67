"""Plugins: finding them, loading them, and looking things up by id."""
