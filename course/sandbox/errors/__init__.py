"""What went wrong in a student's process, in words, and at which of the student's lines."""
