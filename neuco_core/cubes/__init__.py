"""Inputs as data cubes, and where they are read from."""
