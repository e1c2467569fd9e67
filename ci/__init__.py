"""Continuous integration, all of it runnable on a laptop: ``python -m ci --help``."""
