"""The results of the parts: the reader's function, the trainings, their histories."""
