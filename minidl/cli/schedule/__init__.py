"""`minidl schedule`: `command.py` has its options; `run.py` makes, plays and shows the schedule."""
