"""`minidl compare`: `command.py` has its options, `settings.py` what they mean; `report.py` title and tables."""
