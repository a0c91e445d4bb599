"""The commands of the course: `python3 -m course NAME` runs the file NAME.py here."""
