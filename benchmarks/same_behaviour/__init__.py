"""Does another checkout behave as this one does? The command is `python -m benchmarks.same_behaviour OTHER_CHECKOUT`.

`__main__.py` runs the cases in both checkouts, `recording.py` is what runs there, `comparison.py` finds the
differences, and `exact.py` turns values into text that is equal only if they are. Then a file for each group of cases:
`strategies.py`, `collectives.py`, `engines.py`, `compressors.py`, `learning.py`, `checks.py`, `public_names.py` and
`commands.py`. The cases use public names only, because they run in checkouts of different inner layout.
"""
