"""Judging a whole notebook: what `check NN`, `grade FOLDER`, nbgrader's autograde and the tests have in common."""
