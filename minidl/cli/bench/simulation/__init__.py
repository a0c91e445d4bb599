"""`minidl bench simulation`: real seconds of a simulated all-reduce compared with SimGrid's (`simgrid_ring.py`)."""
