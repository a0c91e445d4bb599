ANSWERS = r"""
=== parts
synchronous: a period of 1: minibatch SGD
periods: longer periods, the last of which may be incomplete
post local: a round after each of the first steps (post-local SGD)
rounds: one all-reduce of n words in each round, and nothing else
=== base
def local_sgd(comm, x, gradient, lr, period, steps, first):
    for step in range(steps):
        x = x - lr * gradient(x, step)
        if step < first or (step - first) % period == period - 1 or step == steps - 1:
            total = x.copy()
            comm.all_reduce(total)
            x = total / comm.size
    return x
=== wrong: no round after the last step :: periods, post local, rounds :: The last round is missing
-        if step < first or (step - first) % period == period - 1 or step == steps - 1:
+        if step < first or (step - first) % period == period - 1:
=== wrong: a round before a period is over :: periods, post local, rounds :: after one step
+        if step < first or (step - first) % period == 0 or step == steps - 1:
=== wrong: periods counted from step 0 :: post local, rounds :: begin after the first
+        if step < first or (step + 1) % period == 0 or step == steps - 1:
=== wrong: no rounds at first :: post local, rounds :: of the first `first` steps has a round
+        if step % period == period - 1 or step == steps - 1:
=== wrong: one step too many at first :: periods, post local, rounds :: One step too many
+        if step <= first or (step - first) % period == period - 1 or step == steps - 1:
=== wrong: a round in every step :: periods, post local, rounds :: whatever the period
+        if True or step < first or (step - first) % period == period - 1 or step == steps - 1:
=== wrong: one-shot averaging :: all :: one-shot averaging
+        if step == steps - 1:
=== wrong: no round after a single step at the end :: post local, rounds :: expected :: hidden only
+        if step < first or (step - first) % period == period - 1 or step == steps - 1 > first:
=== wrong: the sum instead of the mean :: synchronous, periods, post local :: sums of the weights
-            x = total / comm.size
+            x = total
=== wrong: gradients averaged instead of weights :: periods, post local :: the weights stay apart
def local_sgd(comm, x, gradient, lr, period, steps, first):
    for step in range(steps):
        g = gradient(x, step)
        if step < first or (step - first) % period == period - 1 or step == steps - 1:
            g = comm.all_reduce(g.copy()) / comm.size
        x = x - lr * g
    return x
=== wrong: the mean is not taken over :: synchronous, periods, post local :: goes on with the mean
-            x = total / comm.size
-    return x
+            mean = total / comm.size
+    return mean
=== wrong: a second all-reduce after the last step :: rounds :: one round is enough
-    return x
+    return comm.all_reduce(x.copy()) / comm.size
=== wrong: the weights are gathered :: rounds :: no comm.all_gather
-            comm.all_reduce(total)
-            x = total / comm.size
+            x = np.mean(comm.all_gather(x), axis=0)
=== wrong: rank 0 averages, and broadcasts :: rounds :: no comm.broadcast
+            comm.reduce(total)
+            x = comm.broadcast(total / comm.size)
=== wrong: the weights are changed in place :: synchronous :: changed its argument x at [0]
-        x = x - lr * gradient(x, step)
+        x -= lr * gradient(x, step)
=== wrong: the mean before the step :: synchronous, periods, post local :: comes after the step
-        x = x - lr * gradient(x, step)

             x = total / comm.size
+        x = x - lr * gradient(x, step)
=== wrong: a barrier before the round :: rounds :: no comm.barrier
             total = x.copy()
+            comm.barrier()
=== wrong: twice the words :: rounds :: has the shape of x
-            comm.all_reduce(total)
+            total = comm.all_reduce(np.concatenate([total, total]))[: len(x)]
=== wrong: ten rounds at most :: periods, rounds :: expected
def local_sgd(comm, x, gradient, lr, period, steps, first):
    rounds = 0
    for step in range(steps):
        x = x - lr * gradient(x, step)
        if rounds < 10 and (step < first or (step - first) % period == period - 1 or step == steps - 1):
            x = comm.all_reduce(x) / comm.size
            rounds += 1
    return x
=== right: a list of lengths of periods
def local_sgd(comm, x, gradient, lr, period, steps, first):
    lengths = [1] * min(first, steps)
    while sum(lengths) < steps:
        lengths.append(min(period, steps - sum(lengths)))
    numbers = iter(range(steps))
    for length in lengths:
        for _ in range(length):
            x = x - lr * gradient(x, next(numbers))
        x = comm.all_reduce(x / comm.size)
    return x
=== right: the mean of the movements since the last round
def local_sgd(comm, x, gradient, lr, period, steps, first):
    common, moved = x.copy(), np.zeros_like(x)
    left = 1 if first else period
    for step in range(steps):
        moved -= lr * gradient(common + moved, step)
        left -= 1
        if left == 0 or step + 1 == steps:
            own = comm.reduce_scatter(moved)
            moved = np.concatenate([np.ravel(each) for each in comm.all_gather(own)]) / comm.size
            common, moved = common + moved, np.zeros_like(x)
            left = 1 if step + 1 < first else period
    return common
"""
