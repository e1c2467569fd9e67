"""Predict the scores that nobody has run, from those that are known."""
