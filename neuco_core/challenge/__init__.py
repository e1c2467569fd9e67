"""A challenge with hidden tasks: rules, a journal of submissions, evaluation, feedback, board and audit."""
