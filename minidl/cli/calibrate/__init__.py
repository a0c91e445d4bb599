"""`minidl calibrate`: `command.py` has its options; `run.py` measures, prints and writes the file."""
