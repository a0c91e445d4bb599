"""The student's side of an answer on several ranks: a process for each rank, kept apart from the others."""
