"""A notebook's cells, run without a kernel."""
