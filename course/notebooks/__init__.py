"""Notebook files: the roles of their cells, and how they are read and written."""
