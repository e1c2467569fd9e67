"""Runs: plan which cells to score, run them on an engine, save each record."""
