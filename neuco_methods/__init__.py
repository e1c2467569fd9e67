"""Methods: each directory here is a plugin, found without being named anywhere else."""
