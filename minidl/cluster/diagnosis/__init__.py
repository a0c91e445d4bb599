"""Diagnosis of wrong programs.

`fingerprints.py` compares the collective calls of the ranks, `call_order.py` the order of the lines that make them, and
`call_site.py` finds these lines. `errors.py` has the errors that users see.
"""
