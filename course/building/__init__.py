"""How the texts that people write become notebooks.

`sources.py` finds them, `text.py` reads one, `execution.py` runs it, `release.py` clears it for students, `making.py`
does all that for several; `staleness.py` sees what is not up to date, `assignment_rules.py` what an assignment lacks,
`progress.py` shows how it goes.
"""
