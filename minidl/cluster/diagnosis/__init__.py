"""Telling a wrong program what is wrong with it.

`fingerprints.py` compares the collectives that ranks are in, `call_order.py` the order of the lines that they call
from, `call_site.py` finds these lines; `errors.py` has the errors that users see.
"""
