"""A student's feedback page: the graded notebook as HTML that is safe to open."""
