"""Scores of anything that gives embeddings (``evaluate``), and whether one is better than another (``compare``)."""
