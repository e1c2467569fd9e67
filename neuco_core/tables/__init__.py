"""Tables with ids: labels, embeddings, and their file formats."""
