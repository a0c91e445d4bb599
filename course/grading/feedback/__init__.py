"""A student's feedback page.

graded_notebook.py    the notebook with the outcomes of its checks
page.py               the same as one HTML file
markdown.py           text cells as HTML without scripts
places.py             the path of each page
"""
