"""Score records: what they hold, how they are kept, and what makes one stale."""
