"""The course's own environment, with the standard library alone.

bootstrap.py       decides what `.venv` needs, and continues inside it
installation.py    makes and fills `.venv`
requirements.py    what pyproject.toml asks for
step.py            runs one tool, with a line of progress
exclusive.py       one process at a time
child.py           runs a program in the foreground
"""
