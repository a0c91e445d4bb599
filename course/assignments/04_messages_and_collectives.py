# %% [markdown]
# # Messages and collectives: exercises

# %% given="setup"

from course.checks import messages_and_collectives as check

# %% [markdown]
# ## 1. A tree for a broadcast (3 points)


# %% solution="broadcast_tree"
def broadcast_tree(comm, x):
    """Give every rank the array of rank 0 and return it."""
    ### BEGIN SOLUTION
    known = 1
    while known < comm.size:
        if comm.rank < known and comm.rank + known < comm.size:
            comm.send(x, comm.rank + known)
        elif known <= comm.rank < 2 * known:
            x = comm.recv(comm.rank - known)
        known *= 2
    return x
    ### END SOLUTION


# %% test="broadcast_tree" points=3
check.broadcast_tree(broadcast_tree)
### BEGIN HIDDEN TESTS
check.broadcast_tree(broadcast_tree, sizes=[(3, 1), (6, 0), (13, 9)], seed=11)
### END HIDDEN TESTS

# %% [markdown]
# ## 2. In a sentence or two (2 points)
# Why does rank 0 not send to everyone itself?

# %% [markdown] manual="why_a_tree" points=2
# Because it would need p - 1 steps, the tree log2(p).
