"""Measures of a run: the gradient noise scale, how fast a model learns, and a report card of published claims.

`noise_scale.py`, `learning_speed.py`, `report_card.py` (on `result_table.py` and `claimed_speedups.py`).
"""
