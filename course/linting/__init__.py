"""What `python3 -m course lint` checks: rules on how the sources are written, which no test judges.

checkers.py         ruff, mypy and import-linter, run as programs
types_for_users.py  mistakes of a user that mypy must find
files.py            file names, the maps of folders, the floors that CONTRIBUTING.md lists
words.py            docstrings use the field's words
public_imports.py   the course imports public names of minidl only
lectures.py         the form of a lecture: guesses and panels
reading_time.py     how long a lecture takes to read

Each rule is a function from the root of the clone to its complaints, one line each.
"""
