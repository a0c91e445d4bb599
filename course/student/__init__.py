"""One student's work: the copy in `work/`, how far it is, and the report of a check."""
