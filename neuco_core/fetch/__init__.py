"""Files from anywhere, verified: transports, the cache, pins and links."""
