"""Boards as a static web site: no server, no outside address, every name and card escaped."""
