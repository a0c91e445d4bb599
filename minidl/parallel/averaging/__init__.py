"""Strategies in which every rank trains a model of its own, and models are averaged.

`local_sgd.py` (with `outer_momentum.py`), `one_shot_averaging.py`, `elastic_averaging.py`, `gossip.py` (with
`mixing.py` and `pairwise_averaging.py`) and `ensemble.py`.
"""
