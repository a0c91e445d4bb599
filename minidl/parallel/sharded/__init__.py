"""Replicas that share the state of training out among them: optimizer, gradients, weights (ZeRO).

sharded              the strategy
shares               what each replica updates and keeps
flat_group           the weights of several parameters as one vector, of which each rank owns a range
units                the stages of a model, whose weights a node has only while they compute
scattered_gradients  gradient buckets whose sums are divided among the ranks
offload              what a device leaves to its host, which updates the weights
device_bytes         counts what a device holds
"""
