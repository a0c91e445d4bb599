"""From the texts that people write to notebooks.

sources.py             finds the texts
text.py                reads one as a notebook
execution.py           runs it
making.py              runs and writes several
staleness.py           finds notebooks that are not up to date
assignment_rules.py    what every assignment must have
build.py               all of that, for `course build`
progress.py            shows how it goes
hidden_tests.py        the arguments of hidden tests, in a text
drawing.py             draws others of the same kind
known_answers.py       right and wrong answers, to prove a draw
named_mistakes.py      what a check says of each mistake that it knows
redrawing.py           all of that, for `course redraw`
imports.py             which files a file imports
pictures.py            smaller PNGs, so that notebooks stay small
"""
