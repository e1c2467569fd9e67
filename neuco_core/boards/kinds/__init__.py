"""The kinds of boards that come with neuco: each makes a ranking of cells."""
