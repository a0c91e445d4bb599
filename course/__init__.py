"""The course: `python3 -m course` from the root of a clone, with nothing but Python installed."""
