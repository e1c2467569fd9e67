"""Scoring: from embeddings and labels to a score. Pure: no files, no network."""
