"""Data parallelism: replicas that apply the same update in every step.

`serial.py` is the truth that they must equal, `synchronous.py` all-reduces gradients, `sufficient_factors.py` sends the
factors of a linear layer's gradient instead; `synchronized_batch_norm.py` normalises over the batches of all ranks.
"""
