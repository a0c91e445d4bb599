"""Makes the course's own environment; these files import only the standard library.

bootstrap.py       decides what `.venv` needs, and continues inside it
installation.py    makes and fills `.venv`
requirements.py    what pyproject.toml asks for
step.py            runs one tool, with a line of progress
exclusive.py       a lock, which one process has at a time
child.py           runs a program in the foreground
"""
