"""Grading in a container: the command outside, and the program that runs inside."""
