"""Ranking and its uncertainty, on arrays."""
