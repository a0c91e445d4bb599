"""`minidl simulate`: `command.py` has its options; `cases.py` simulates; `report.py` shows the results."""
