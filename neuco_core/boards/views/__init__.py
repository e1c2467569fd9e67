"""Views of a board: text, figures, the web site."""
