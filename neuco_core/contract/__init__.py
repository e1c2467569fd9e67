"""The contract of tasks and methods, and the start of new ones."""
