ANSWERS = r"""
=== parts
mean: the mean gradient
estimates: the estimates of |G|^2 and tr(Sigma)
traffic: one all-reduce of n + 1 numbers, and nothing else
bits: the same on all ranks to the bit, and the gradient as it was
=== base
def noise_of_ranks(comm, gradient, b):
    p = comm.size
    message = np.append(gradient, gradient @ gradient)
    comm.all_reduce(message)
    mean, small = message[:-1] / p, message[-1] / p
    large = mean @ mean
    trace = (small - large) / (1 / b - 1 / (p * b))
    return mean, large - trace / (p * b), trace
=== wrong: a norm of each rank, where there are more than two :: traffic :: at most
-    message = np.append(gradient, gradient @ gradient)
+    message = np.append(gradient, np.zeros(p - 1))
+    message[-1] = gradient @ gradient
-    mean, small = message[:-1] / p, message[-1] / p
+    mean, small = message[: len(gradient)] / p, message[-1] / p
=== wrong: float32 on the way :: all :: expected
+    message = np.append(gradient, gradient @ gradient).astype(np.float32)
=== wrong: gathers all gradients :: traffic :: got comm.all_gather
-    message = np.append(gradient, gradient @ gradient)
-    comm.all_reduce(message)
+    rows = np.reshape(comm.all_gather(gradient), (p, -1))
+    message = np.append(rows.sum(axis=0), (rows**2).sum())
=== wrong: two all-reduces :: traffic :: fits behind the gradient
+    g, s = gradient.copy(), np.array([gradient @ gradient])
+    comm.all_reduce(g)
+    comm.all_reduce(s)
+    message = np.append(g, s)
=== wrong: this rank's own squared norm :: estimates, bits :: Only this rank's own squared norm
-    mean, small = message[:-1] / p, message[-1] / p
+    mean, small = message[:-1] / p, gradient @ gradient
=== wrong: the sum instead of the mean :: mean, estimates, bits :: This is the sum over all ranks
+    mean, small = message[:-1], message[-1] / p
=== wrong: the squared norms are added up :: estimates :: take their mean
+    mean, small = message[:-1] / p, message[-1]
=== wrong: the mean from the own gradient and the rest of the sum :: bits :: compared with that of rank 0
+    mean, small = gradient / p + (message[:-1] - gradient) / p, message[-1] / p
=== wrong: the squared norm of the sum :: estimates :: this is the squared norm of their sum
-    large = mean @ mean
+    large = p * p * (mean @ mean)
=== wrong: |G|^2 is biased :: estimates :: still has the noise
-    return mean, large - trace / (p * b), trace
+    return mean, large, trace
=== wrong: the spread of the ranks, not of the samples :: estimates :: came out b times too small
+    trace /= b
+    return mean, large - trace / p, trace
=== wrong: the mean over the coordinates :: estimates :: a trace is a sum over the coordinates
+    return mean, large - trace / (p * b), trace / len(mean)
=== wrong: cut off at 0 :: estimates :: may be negative
+    return mean, max(large - trace / (p * b), 0.0), trace
=== wrong: divided by p, not by p - 1 :: estimates :: and not by p - 1
-    trace = (small - large) / (1 / b - 1 / (p * b))
+    trace = (small - large) * b
=== wrong: sizes swapped :: estimates :: sizes were swapped
-    trace = (small - large) / (1 / b - 1 / (p * b))
-    return mean, large - trace / (p * b), trace
+    trace = (small - large) / (1 / (p * b) - 1 / b)
+    return mean, large - trace / b, trace
=== wrong: writes into the caller's gradient :: bits :: comm.all_reduce writes into the array
     trace = (small - large) / (1 / b - 1 / (p * b))
+    gradient[...] = mean
=== wrong: only rank 0 takes part :: all ::  :: stuck
-    comm.all_reduce(message)
+    if comm.rank == 0:
+        comm.all_reduce(message)
=== right: the squared norm in front, already divided, and the sample variance of the ranks
def noise_of_ranks(comm, gradient, b):
    p = comm.size
    sent = np.empty(len(gradient) + 1)
    sent[0], sent[1:] = np.sum(gradient**2) / p, gradient / p
    comm.all_reduce(sent)
    mean = sent[1:].copy()
    trace = b * p / (p - 1) * (sent[0] - np.sum(mean**2))
    return [mean, np.sum(mean**2) - trace / (p * b), trace]
=== right: a mean of the library, and the equation solved for both
def noise_of_ranks(comm, gradient, b):
    sent = np.concatenate([gradient, [np.dot(gradient, gradient)]])
    comm.all_reduce(sent, op="mean")
    mean, B = sent[:-1], comm.size * b
    both = np.linalg.solve([[1, 1 / b], [1, 1 / B]], [sent[-1], np.dot(mean, mean)])
    return mean, float(both[0]), float(both[1])
"""
