"""Communication of gradients, concurrent with backward.

flat_vector     all weights, or all gradients, as one vector
backward_order  releases groups of gradients in one fixed order
buckets         groups gradients for all-reduce
compressed      compresses them
"""
