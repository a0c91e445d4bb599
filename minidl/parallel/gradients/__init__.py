"""Gradients on their way to other ranks while backward goes on.

`flat_vector.py` joins arrays to one, `backward_order.py` says in which order gradients become final, `buckets.py`
groups them for all-reduce, `compressed.py` compresses them.
"""
