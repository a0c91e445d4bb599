ANSWERS = r"""
=== parts
scaled: k times the rate without warm-up
warmed: the warm-up: its first step, its last one, and equal increments
dropped: warm-up and drops in the right steps, the last minibatch of an epoch is smaller
=== base
def scheduled_rate(step, base_lr, base_batch, batch, samples, warm_up, drops):
    steps = -(-samples // batch)
    k, W = batch / base_batch, warm_up * steps
    if step < W:
        return base_lr * (1 + (k - 1) * step / W)
    return base_lr * k * 0.1 ** sum(step >= e * steps for e in drops)
=== wrong: drops are counted as the steps come :: dropped :: depends on the arguments alone
-    return base_lr * k * 0.1 ** sum(step >= e * steps for e in drops)
+    seen = scheduled_rate.__dict__.setdefault(f"{base_lr} {batch} {samples} {drops}", [])
+    seen += [e for e in drops if step >= e * steps and e not in seen]
+    return base_lr * k * 0.1 ** len(seen)
=== wrong: drops counted from the end of the warm-up :: dropped :: counted from the end of the warm-up
+    return base_lr * k * 0.1 ** sum(step - W >= e * steps for e in drops)
=== wrong: drops one step late :: dropped :: one step late
+    return base_lr * k * 0.1 ** sum(step > e * steps for e in drops)
=== wrong: one drop only :: dropped :: Only one of the drops
+    return base_lr * k * 0.1 ** any(step >= e * steps for e in drops)
=== wrong: k squared: sums of gradients, and a scaled rate :: all :: multiplied by k squared
-    k, W = batch / base_batch, warm_up * steps
+    k, W = (batch / base_batch) ** 2, warm_up * steps
=== wrong: square root scaling :: all :: by the root of k
+    k, W = (batch / base_batch) ** 0.5, warm_up * steps
=== wrong: the rate is not scaled :: all :: was not scaled by k
+    k, W = 1, warm_up * steps
=== wrong: k rounded down :: scaled, warmed :: it was rounded down
+    k, W = batch // base_batch, warm_up * steps
=== wrong: constant warm-up :: warmed, dropped :: This is a constant warm-up
-        return base_lr * (1 + (k - 1) * step / W)
+        return base_lr
=== wrong: warm-up from 0 :: warmed, dropped :: begins with rate 0
+        return base_lr * k * step / W
=== wrong: warm-up from base_lr / k :: warmed, dropped :: begins with base_lr / k
+        return base_lr * (1 / k + (k - 1 / k) * step / W)
=== wrong: the full rate in step W - 1 :: warmed, dropped :: comes one step too early
+        return base_lr * (1 + (k - 1) * step / (W - 1))
=== wrong: an increment in step 0 already :: warmed, dropped :: The first step has an increment already
+        return base_lr * (1 + (k - 1) * (step + 1) / W)
=== wrong: raised once an epoch :: warmed, dropped :: raised once an epoch
+        return base_lr * (1 + (k - 1) * (step // steps) / warm_up)
=== wrong: a geometric warm-up :: warmed, dropped :: by the same factor in each step
+        return base_lr * k ** (step / W)
=== wrong: no warm-up :: warmed, dropped :: There is no warm-up
-    if step < W:
+    if False:
=== wrong: epochs of one node's samples :: warmed, dropped :: counted in steps of base_batch samples
-    steps = -(-samples // batch)
+    steps = -(-samples // base_batch)
=== wrong: the smaller last minibatch is forgotten :: dropped :: its last minibatch is a step, too
+    steps = samples // batch
=== wrong: always one step more than whole minibatches :: warmed :: one step too many where nothing is left over
+    steps = samples // batch + 1
=== wrong: epochs counted in samples :: dropped :: Epochs were counted in samples
+    steps = samples / batch
=== wrong: divides by the length of a warm-up that there is not :: scaled, dropped :: ZeroDivisionError :: raised
def scheduled_rate(step, base_lr, base_batch, batch, samples, warm_up, drops):
    steps = -(-samples // batch)
    k, W = batch / base_batch, warm_up * steps
    warm = base_lr * (1 + (k - 1) * step / W)
    return warm if step < W else base_lr * k * 0.1 ** sum(step >= e * steps for e in drops)
=== right: interpolates
def scheduled_rate(step, base_lr, base_batch, batch, samples, warm_up, drops):
    epoch = int(np.ceil(samples / batch))
    top = base_lr * batch / base_batch
    rate = np.interp(step, [0, warm_up * epoch], [base_lr, top]) if warm_up else top
    for drop in drops:
        if step // epoch >= drop:
            rate = rate / 10
    return rate
=== right: goes through the run step by step
def scheduled_rate(step, base_lr, base_batch, batch, samples, warm_up, drops):
    left, steps = samples, 0
    while left > 0:
        left, steps = left - batch, steps + 1
    peak = base_lr * (batch / base_batch)
    rate = base_lr if warm_up else peak
    for now in range(1, step + 1):
        if now < warm_up * steps:
            rate += (peak - base_lr) / (warm_up * steps)
        elif now == warm_up * steps:
            rate = peak
        if now % steps == 0 and now // steps in drops:
            rate *= 0.1
    return np.float64(rate)
"""
