"""The book: lectures, exercises, the core, guides and the API reference as a site that needs no server and no network.

contents.py    which pages there are, in which order
links.py       links between files of the repository as links between pages
notebook.py    a notebook as a page
core.py        a file of the core as a page: prose and code in turn
api.py         a page for each public package
markup.py      docstrings as Sphinx reads them
start.md       the start page
site.py        writes all pages' sources and lets Sphinx make the site
conf.py        settings of Sphinx
static/        style sheet and script
"""
