"""What travels between the check and a student's process: messages through a pipe, whose contents are plain data."""
