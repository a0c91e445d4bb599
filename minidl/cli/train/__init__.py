"""`minidl train`: `command.py` has its options; `run.py` carries out a run."""
