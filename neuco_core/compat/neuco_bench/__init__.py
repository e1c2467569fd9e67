"""The drop-in for NeuCo-Bench's own command: its options, its config file, its folders and files."""
