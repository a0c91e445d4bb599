"""`minidl compare`: `command.py` has its options; `runs.py` trains every strategy; `report.py` shows the results."""
