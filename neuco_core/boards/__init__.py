"""Boards: a pure function of records and a suite. Ranking, how sure it is, what changed, and views of it."""
