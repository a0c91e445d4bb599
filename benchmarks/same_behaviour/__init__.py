"""Does another checkout behave as this one does? The command is `python -m benchmarks.same_behaviour OTHER_CHECKOUT`.

    __main__.py     runs the cases in both checkouts
    recording.py    runs there, and writes what the cases give
    exact.py        turns values into text that is equal only if they are
    comparison.py   finds the differences

and a file for each group of cases, under the group's name. The cases use public names only, because they run in
checkouts of different inner layout.
"""
