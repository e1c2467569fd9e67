"""Boards: a pure function of records, a suite and its kind of board. Ranking, uncertainty, history and views."""
