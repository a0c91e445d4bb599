"""Notebook files.

notebook_file.py    reads notebooks within bounds, and writes them
node.py             the parts of a notebook
roles.py            the role of a cell, from nbgrader's metadata
release.py          a student's notebook, made from a solution
"""
