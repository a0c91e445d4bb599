"""Diagnosis of wrong programs.

`fingerprints.py` compares the collective calls of the ranks, and `call_order.py` the order of the lines that make them.
`errors.py` has the errors that users see.
"""
