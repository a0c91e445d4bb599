"""CSV tables: the grader's own, which a spreadsheet may have changed, and those that teachers bring."""
