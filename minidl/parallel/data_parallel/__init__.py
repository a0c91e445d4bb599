"""Data parallelism: replicas that apply the same update in every step.

serial                   one node: the reference that the others must equal
synchronous              gradients are all-reduced
sufficient_factors       the factors of a linear layer's gradient are sent instead
synchronized_batch_norm  statistics over the minibatches of all nodes
"""
