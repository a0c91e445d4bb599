"""The API reference, made from docstrings by Sphinx.

pages.py     a page for each public package
markup.py    docstrings as Sphinx reads them
"""
