ANSWERS = r"""
=== parts
once: one step: each machine's own average
often: several steps: the mean stays, and the distance to it shrinks by the consensus factor
messages: in each step one message of n words to each neighbour, and nothing else
together: all machines send at the same time
=== base
def gossip(comm, x, weights, steps):
    own = comm.rank
    others = [rank for rank in weights if rank != own]
    for _ in range(steps):
        sends = [comm.isend(x, rank) for rank in others]
        new = weights[own] * x
        for rank in others:
            new = new + weights[rank] * comm.recv(rank)
        for send in sends:
            send.wait()
        x = new
    return x
=== wrong: the machine's own number is missing :: once, often, together :: own number is missing
-        new = weights[own] * x
+        new = 0 * x
=== wrong: the plain mean with the neighbours :: once, often, together :: weights are not used
+        new = x / len(weights)
-            new = new + weights[rank] * comm.recv(rank)
+            new = new + 1 / len(weights) * comm.recv(rank)
=== wrong: sums :: once, often, together :: sums without weights
+        new = x
-            new = new + weights[rank] * comm.recv(rank)
+            new = new + comm.recv(rank)
=== wrong: the numbers of the beginning in each step :: often :: numbers of the beginning are sent
     others = [rank for rank in weights if rank != own]
+    new = x
-        new = weights[own] * x
+        new = weights[own] * new
-        x = new
-    return x
+    return new
=== wrong: one step too few :: all :: numbers of the beginning
-    for _ in range(steps):
+    for _ in range(steps - 1):
=== wrong: one step too many :: all :: one step too many
+    for _ in range(steps + 1):
=== wrong: messages in float32 :: all :: expected
-        sends = [comm.isend(x, rank) for rank in others]
+        sends = [comm.isend(x.astype(np.float32), rank) for rank in others]
=== wrong: a message twice :: messages, together :: one message to each neighbour
+        sends = [comm.isend(x, rank) for rank in others for _ in (0, 1)]
-            new = new + weights[rank] * comm.recv(rank)
+            new = new + weights[rank] / 2 * (comm.recv(rank) + comm.recv(rank))
=== wrong: a barrier in each step :: messages, together :: comm.barrier
         x = new
+        comm.barrier()
=== wrong: in any order, so that a fast neighbour counts twice :: often :: expected
-            new = new + weights[rank] * comm.recv(rank)
+            new = new + (got := comm.recv(set(others))) * weights[comm.last_source]
=== wrong: everybody gathers everything :: messages, together :: comm.all_gather
def gossip(comm, x, weights, steps):
    for _ in range(steps):
        parts = comm.all_gather(x)
        x = sum(weights[rank] * parts[rank] for rank in weights)
    return x
=== wrong: an all-reduce :: all :: mean of all machines
def gossip(comm, x, weights, steps):
    return comm.all_reduce(x.copy()) / comm.size
=== wrong: one neighbour after the other :: together :: holds up its neighbours
def gossip(comm, x, weights, steps):
    for _ in range(steps):
        new = weights[comm.rank] * x
        for rank in weights:
            if rank != comm.rank:
                new = new + weights[rank] * comm.sendrecv(x, rank, rank)
        x = new
    return x
=== wrong: the lower rank of a pair sends first :: together :: comm.isend
def gossip(comm, x, weights, steps):
    for _ in range(steps):
        new = weights[comm.rank] * x
        for rank in weights:
            if rank < comm.rank:
                came = comm.recv(rank)
                comm.send(x, rank)
                new = new + weights[rank] * came
            elif rank > comm.rank:
                comm.send(x, rank)
                new = new + weights[rank] * comm.recv(rank)
        x = new
    return x
=== wrong: machines use what their neighbours have already mixed :: once, often, together :: expected
def gossip(comm, x, weights, steps):
    for _ in range(steps):
        new = weights[comm.rank] * x
        for rank in [r for r in weights if r > comm.rank]:
            comm.send(x, rank)
        for rank in [r for r in weights if r > comm.rank]:
            new = new + weights[rank] * comm.recv(rank)
        for rank in [r for r in weights if r < comm.rank]:
            new = new + weights[rank] * comm.recv(rank)
        for rank in [r for r in weights if r < comm.rank]:
            comm.send(new, rank)
        x = new
    return x
=== wrong: everybody receives first :: all :: rank :: stuck
-        sends = [comm.isend(x, rank) for rank in others]

-        for send in sends:
-            send.wait()
+        for rank in others:
+            comm.send(x, rank)
=== wrong: messages that are already weighted, with the weight behind :: messages :: nothing else
+        sends = [comm.isend(np.append(weights[rank] * x, weights[rank]), rank) for rank in others]
-            new = new + weights[rank] * comm.recv(rank)
+            new = new + comm.recv(rank)[:-1]
=== wrong: blocking sends, which wait for each other if messages are long :: often, messages :: waits for :: stuck
+        for rank in others:
+            comm.send(x, rank)
-        for send in sends:
-            send.wait()
=== wrong: sends to itself, too :: messages :: knows its own number
-        sends = [comm.isend(x, rank) for rank in others]
-        new = weights[own] * x
+        sends = [comm.isend(x, rank) for rank in weights]
+        new = weights[own] * comm.recv(own)
=== wrong: never waits for its sends :: messages :: without waiting for the end of
-        for send in sends:
-            send.wait()
=== wrong: the weights are changed :: once :: changed its argument weights: its keys
     own = comm.rank
+    mine = weights.pop(own)
-        new = weights[own] * x
+        new = mine * x
=== right: receives are begun first
def gossip(comm, x, weights, steps):
    near = sorted(set(weights) - {comm.rank})
    x = np.array(x)
    for _ in range(steps):
        coming = {rank: comm.irecv(rank) for rank in near}
        going = [comm.isend(x, rank) for rank in near]
        parts = {rank: work.wait() for rank, work in coming.items()}
        for work in going:
            work.wait()
        parts[comm.rank] = x
        x = np.sum([weights[rank] * parts[rank] for rank in sorted(parts)], axis=0)
    return x
=== right: moves towards the neighbours; weighted messages in order of arrival
def gossip(comm, x, weights, steps):
    near = set(weights) - {comm.rank}
    for step in range(steps):
        sends = [comm.isend(weights[rank] * x, rank, tag=step) for rank in near]
        left, new = set(near), x * (1 - sum(weights[rank] for rank in near))
        while left:
            new = new + comm.recv(left, tag=step)
            left = left - {comm.last_source}
        for send in sends:
            send.wait()
        x = new
    return x.copy()
"""
