"""Notebook files.

notebook_file.py    read within bounds, and written
node.py             the parts of a notebook
roles.py            what nbgrader's metadata say of a cell
release.py          a student's notebook, made from a solution
"""
