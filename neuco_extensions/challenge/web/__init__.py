"""The web server of a challenge: ``app`` has the routes, ``uploads`` takes files in."""
