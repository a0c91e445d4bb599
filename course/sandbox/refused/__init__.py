"""What a student's code may not import, replace or call."""
