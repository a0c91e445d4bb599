ANSWERS = r"""
=== parts
one: one worker and the centre
several: several workers: weights of their own, and one centre
total: pulls alone conserve the centre plus all workers
rounds: one all-reduce of n words in every period-th step
=== base
def elastic(comm, x, centre, gradient, lr, alpha, period, steps):
    for step in range(steps):
        g = gradient(x, step)
        if step % period == 0:
            pull = alpha * (x - centre)
            moved = pull.copy()
            comm.all_reduce(moved)
            x = x - lr * g - pull
            centre = centre + moved
        else:
            x = x - lr * g
    return x, centre
=== wrong: the centre moves by the new weights (algorithm 1, line 14) :: one, several, total :: weights before the step
-            moved = pull.copy()
+            x = x - lr * g - pull
+            moved = alpha * (x - centre)
             comm.all_reduce(moved)
-            x = x - lr * g - pull
=== wrong: the centre has the gradients, too :: one, several, rounds :: The centre has no gradient
+            moved = pull - lr * g
             x = x - lr * g
+            s = lr * g
+            comm.all_reduce(s)
+            centre = centre - s
=== wrong: the centre moves by the mean of the pulls :: several, total :: not by their mean
-            centre = centre + moved
+            centre = centre + moved / comm.size
=== wrong: the centre is pushed away :: one, several, total :: the centre's pull is wrong
+            centre = centre - moved
=== wrong: the arguments are changed :: one :: changed its argument centre at [0]
+            centre += moved
=== wrong: words beyond the first thousand stay :: several, total :: expected
+            centre = centre + np.where(np.arange(len(x)) < 1000, moved, 0.0)
=== wrong: the centre moves at most to the mean :: several, total :: expected :: hidden only
+            centre = centre + moved / max(1, alpha * comm.size)
=== wrong: each worker moves a centre of its own :: several, total, rounds :: the pulls of all workers
-            comm.all_reduce(moved)
=== wrong: the weights are gathered :: rounds :: no comm.all_gather
+            moved = alpha * sum(each - centre for each in comm.all_gather(x))
=== wrong: an all-reduce for each half :: rounds :: takes one all-reduce
+            comm.all_reduce(moved[:1])
+            comm.all_reduce(moved[1:])
=== wrong: alpha multiplied by the learning rate :: one, several, total :: not multiplied by lr again
-            pull = alpha * (x - centre)
+            pull = lr * alpha * (x - centre)
=== wrong: the workers are pushed away :: one, several, total :: worker's pull is wrong
-            x = x - lr * g - pull
+            x = x - lr * g + pull
=== wrong: the workers are pulled towards the new centre :: one, several, total :: the new one
-            x = x - lr * g - pull

             centre = centre + moved
+            x = x - lr * g - alpha * (x - centre)
=== wrong: the gradient after the pull :: one, several :: before the pull
-        g = gradient(x, step)

-            x = x - lr * g - pull
+            x = x - pull
+            x = x - lr * gradient(x, step)
-            x = x - lr * g
+            x = x - lr * gradient(x, step)
=== wrong: the gradient at the centre :: one, several :: not at the centre
+        g = gradient(centre, step)
=== wrong: a pull in every step :: one, several, rounds :: whatever the period
-        if step % period == 0:
+        if True:
=== wrong: the first pull after `period` steps :: one, several, rounds :: The first pull is in step 0
+        if (step + 1) % period == 0:
=== wrong: an all-reduce in every step, of zeros between pulls :: rounds :: a round in each step
             x = x - lr * g
+            comm.all_reduce(np.zeros_like(x))
=== wrong: the workers take the centre's weights :: one, several, total :: keep weights of their own
             centre = centre + moved
+            x = centre.copy()
=== wrong: the all-reduce writes the sum into the worker's pull :: several, total :: writes into the array
-            moved = pull.copy()
-            comm.all_reduce(moved)
+            moved = comm.all_reduce(pull)
=== wrong: the results swapped :: one, several, total :: in this order
-    return x, centre
+    return centre, x
=== wrong: alpha by heart :: one, several :: expected
 def elastic(comm, x, centre, gradient, lr, alpha, period, steps):
+    alpha = 0.9 / comm.size
=== right: the sum of the weights instead of the pulls, overlapped with the gradient
def elastic(comm, x, centre, gradient, lr, alpha, period, steps):
    for step in range(steps):
        before, total = x, x.copy()
        work = comm.all_reduce(total, async_op=True) if step % period == 0 else None
        x = before - lr * gradient(before, step)
        if work is not None:
            work.wait()
            x = x - alpha * (before - centre)
            centre = (1 - comm.size * alpha) * centre + alpha * total
    return [x, centre]
=== right: a pull, then the rest of the period alone; reduce-scatter and all-gather
def elastic(comm, x, centre, gradient, lr, alpha, period, steps):
    x, centre = x.copy(), centre.copy()
    for first in range(0, steps, period):
        pull = alpha * (x - centre)
        own = comm.reduce_scatter(pull.copy())
        moved = np.concatenate([np.ravel(part) for part in comm.all_gather(own)])
        x -= lr * gradient(x, first) + pull
        centre += moved
        for step in range(first + 1, min(steps, first + period)):
            x -= lr * gradient(x, step)
    return x, centre
"""
