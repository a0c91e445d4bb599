"""Strategies around an authoritative copy of the weights: workers push gradients and fetch weights.

`parameter_server.py`, `backup_workers.py`, `eager_sgd.py` and `hogwild.py` are the strategies. They stand on `store.py`
(weights divided among servers), `requests.py` (one server's loop), `clocks.py` (bounded staleness), `quorum.py` and
`partial_all_reduce.py` (a step that does not wait for all).
"""
