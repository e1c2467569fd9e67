"""Score records, and the matrix of methods × tasks that makes them."""
