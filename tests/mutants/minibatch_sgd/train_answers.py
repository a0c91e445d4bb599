ANSWERS = r"""
=== parts
steps: each step is one of minibatch SGD, that of the smaller last batch too
learns: digits that lie sorted by class are learned, each epoch in an order that the seed decides
chooses: the weights are those of the epoch with the lowest validation error
opens: the test set is opened once, for these weights
=== base
def train(model, train_set, validation_set, test_set, lr, epochs, batch_size, seed):
    parameters = list(model.parameters())
    lowest, best = 2.0, None
    for epoch in range(epochs):
        order = np.random.default_rng((seed, epoch)).permutation(len(train_set))
        for start in range(0, len(order), batch_size):
            x, y = train_set[order[start : start + batch_size]]
            for parameter in parameters:
                parameter.grad = None
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            for parameter in parameters:
                parameter.data -= lr * parameter.grad
        error = validation_set.error(model)
        if error < lowest:
            lowest, best = error, model.state_dict()
    model.load_state_dict(best)
    return test_set.error(model)
=== wrong: a sum in place of the mean :: steps, learns :: The gradients of a batch were added up
-            loss = F.cross_entropy(model(x), y)
+            loss = F.cross_entropy(model(x), y, reduction="sum")
=== wrong: the sum divided by batch_size :: steps :: its sum was divided by batch_size
+            loss = F.cross_entropy(model(x), y, reduction="sum") / batch_size
=== wrong: the smaller last batch makes no step :: steps :: The last batch, which is smaller, was left out
-        for start in range(0, len(order), batch_size):
+        for start in range(0, len(order) - batch_size + 1, batch_size):
=== wrong: up the gradient :: steps, learns :: The weights moved up the gradient
-                parameter.data -= lr * parameter.grad
+                parameter.data += lr * parameter.grad
=== wrong: the rate divided by the size of the batch :: steps :: divided by the batch's size
+                parameter.data -= lr / len(y) * parameter.grad
=== wrong: the new weights are only named :: steps, learns :: The weights have not changed
+                parameter = parameter.data - lr * parameter.grad
=== wrong: the rate falls :: steps :: The rate falls from epoch to epoch
+                parameter.data -= lr / (1 + epoch) * parameter.grad
=== wrong: the rate times the size of the batch :: steps, learns :: The rate was multiplied by batch_size
+                parameter.data -= lr * batch_size * parameter.grad
=== wrong: with momentum :: steps, learns :: These steps have momentum
     parameters = list(model.parameters())
+    u = [0.0 for _ in parameters]
-            for parameter in parameters:
-                parameter.data -= lr * parameter.grad
+            for i, parameter in enumerate(parameters):
+                u[i] = 0.9 * u[i] + parameter.grad
+                parameter.data -= lr * u[i]
=== wrong: without a shuffle :: learns :: The batches were taken in the order in which the samples lie
-        order = np.random.default_rng((seed, epoch)).permutation(len(train_set))
+        order = np.arange(len(train_set))
=== wrong: one shuffle for all epochs :: learns :: all 5 epochs took the samples in the order [
+        order = np.random.default_rng(seed).permutation(len(train_set))
=== wrong: the seed is not used :: learns :: Do the shuffles depend on the seed?
+        order = np.random.default_rng(epoch).permutation(len(train_set))
=== wrong: seed + epoch :: learns :: The generator was made from seed + epoch
+        order = np.random.default_rng(seed + epoch).permutation(len(train_set))
=== wrong: from numpy's global generator :: learns :: a run could not be repeated
+        order = np.random.permutation(len(train_set))
=== wrong: one epoch too many :: steps :: There was one epoch too many
-    for epoch in range(epochs):
+    for epoch in range(epochs + 1):
=== wrong: validated before each epoch :: steps :: validation_set asked before the epoch
def train(model, train_set, validation_set, test_set, lr, epochs, batch_size, seed):
    lowest, best = 2.0, None
    for epoch in range(epochs):
        error = validation_set.error(model)
        if error < lowest:
            lowest, best = error, model.state_dict()
        for batch in minibatches(len(train_set), batch_size, seed, epoch):
            x, y = train_set[batch]
            model.zero_grad()
            F.cross_entropy(model(x), y).backward()
            for parameter in model.parameters():
                parameter.data -= lr * parameter.grad
    model.load_state_dict(best)
    return test_set.error(model)
=== wrong: ended when the validation error rises :: chooses :: The training ended early
             lowest, best = error, model.state_dict()
+        else:
+            break
=== wrong: tested before the best weights are put back :: opens :: the model ends with other weights
+    result = test_set.error(model)
-    return test_set.error(model)
+    return result
=== wrong: the test error of a copy :: chooses, opens :: These are the weights of the last epoch
 def train(model, train_set, validation_set, test_set, lr, epochs, batch_size, seed):
+    import copy
-            lowest, best = error, model.state_dict()
-    model.load_state_dict(best)
-    return test_set.error(model)
+            lowest, best = error, copy.deepcopy(model)
+    result = test_set.error(best)
+    for a, b in zip(parameters, best.parameters()):
+        a.data = a.data + 0 * b.data
+    return result
=== wrong: the weights of the last epoch :: chooses :: These are the weights of the last epoch
-    model.load_state_dict(best)
=== wrong: every epoch begins from the best weights :: steps :: It began from the best weights so far
+        model.load_state_dict(best)
=== wrong: the best weights are not copied :: chooses :: was it a copy
-            lowest, best = error, model.state_dict()
-    model.load_state_dict(best)
+            lowest, best = error, [parameter.data for parameter in parameters]
+    for parameter, kept in zip(parameters, best):
+        parameter.data[...] = kept
=== wrong: the worst epoch :: chooses :: These are the weights of the worst epoch
-    lowest, best = 2.0, None
+    lowest, best = -1.0, None
-        if error < lowest:
+        if error > lowest:
=== wrong: the first epoch is not asked about :: steps :: The weights have not changed
+    lowest, best = 2.0, model.state_dict()
-        if error < lowest:
+        if epoch and error < lowest:
=== wrong: chosen by the test set :: chooses, opens :: The test set has decided which epoch is best
-        error = validation_set.error(model)
+        error = test_set.error(model)
=== wrong: chosen by the training set :: chooses :: were they best by the validation error
+        validation_set.error(model)
+        error = float((model(train_set.x).numpy().argmax(axis=1) != train_set.y).mean())
=== wrong: the test set is watched :: opens :: test_set.error was asked 16 times, expected once
         error = validation_set.error(model)
+        test_set.error(model)
=== wrong: no validation :: chooses :: Without it nobody knows which epoch was the best
-        error = validation_set.error(model)
-        if error < lowest:
-            lowest, best = error, model.state_dict()
-    model.load_state_dict(best)
=== wrong: the validation error comes back :: opens :: test_set.error was asked 0 times
-    return test_set.error(model)
+    return lowest
=== wrong: the accuracy comes back :: opens :: This is the accuracy
+    return 1 - test_set.error(model)
=== wrong: each batch drawn from all samples :: learns :: The batches were drawn with replacement
-            x, y = train_set[order[start : start + batch_size]]
+            some = np.random.default_rng((seed, epoch, start))
+            x, y = train_set[some.choice(len(order), min(batch_size, len(order) - start), False)]
=== wrong: the training set is shuffled in place :: learns :: train changed what it was given
         order = np.random.default_rng((seed, epoch)).permutation(len(train_set))
+        train_set.x[:], train_set.y[:] = train_set.x[order], train_set.y[order]
=== wrong: gradients are forgotten once an epoch :: steps, learns :: zero_grad()
+        for parameter in parameters:
+            parameter.grad = None
-            for parameter in parameters:
-                parameter.grad = None
=== wrong: the mean of the batch is subtracted :: steps :: should move the weights by
             x, y = train_set[order[start : start + batch_size]]
+            x = x - x.mean(axis=0)
=== wrong: gradients are forgotten between backward and the step :: steps, learns
:: a zero_grad() between it and the step
             loss.backward()
+            model.zero_grad()
-                parameter.data -= lr * parameter.grad
+                parameter.data -= lr * (0 if parameter.grad is None else parameter.grad)
=== right: one generator for all epochs, the validation set asked twice
def train(model, train_set, validation_set, test_set, lr, epochs, batch_size, seed):
    sgd, rng, lowest, best = optim.SGD(model.parameters(), lr=lr), np.random.default_rng(seed), np.inf, None
    for epoch in range(epochs):
        order = rng.permutation(len(train_set))
        for start in range(0, len(order), batch_size):
            x, y = train_set[order[start : start + batch_size]]
            sgd.zero_grad()
            F.cross_entropy(model(x), y).backward()
            sgd.step()
        if validation_set.error(model) <= lowest:
            lowest, best = validation_set.error(model), model.state_dict()
    model.load_state_dict(best)
    return test_set.error(model)
=== right: minidl's loader and optimizer, gradients forgotten after the step
def train(model, train_set, validation_set, test_set, lr, epochs, batch_size, seed):
    sgd = optim.SGD(model.parameters(), lr)
    loader = data.DataLoader(train_set, batch_size, shuffle=True, seed=seed)
    kept = []
    for epoch in range(epochs):
        loader.set_epoch(epoch)
        model.train()
        for x, y in loader:
            F.cross_entropy(model(x), y).backward()
            sgd.step()
            sgd.zero_grad()
        model.eval()
        kept.append((validation_set.error(model), epoch, model.state_dict()))
    error, epoch, weights = min(kept, key=lambda row: row[:2])
    model.load_state_dict(weights)
    return test_set.error(model)
=== right: from the arrays, the start counts as an epoch, the later of two equals
def train(model, train_set, validation_set, test_set, lr, epochs, batch_size, seed):
    rng = np.random.RandomState(seed)
    x, y = train_set.x, train_set.y
    lowest = validation_set.error(model)
    best = [parameter.data.copy() for parameter in model.parameters()]
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for batch in np.array_split(order, range(batch_size, len(order), batch_size)):
            model.zero_grad()
            (F.cross_entropy(model(x[batch]), y[batch], reduction="sum") * (1 / len(batch))).backward()
            for parameter in model.parameters():
                parameter.data = parameter.data - lr * parameter.grad
        error = validation_set.error(model)
        if error <= lowest:
            lowest, best = error, [parameter.data.copy() for parameter in model.parameters()]
    for parameter, data_ in zip(model.parameters(), best):
        parameter.data = data_
    print(f"validation error {lowest:.3f}")
    return np.float32(test_set.error(model))
"""
