"""From a method to embeddings: running encoders, caching and checking what they give."""
