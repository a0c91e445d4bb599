"""The check's side of an answer on several ranks: a simulation whose ranks are processes of the student."""
