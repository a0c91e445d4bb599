"""Answers to the last exercise of chapter 02: training loops, with one planted mistake each, or written otherwise."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant

STEPS = "each step is one of minibatch SGD, that of the smaller last batch too"
LEARNS = "digits that lie sorted by class are learned, each epoch in an order that the seed decides"
CHOOSES = "the weights are those of the epoch with the lowest validation error"
OPENS = "the test set is opened once, for these weights"

LOOP = """
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
"""


def loop(*changes: tuple[str, str]) -> str:
    """The loop with parts of its text replaced."""
    text = LOOP
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


MUTANTS = [
    Mutant(
        "train",
        "gradients are not forgotten",
        loop(("            for parameter in parameters:\n                parameter.grad = None\n", "")),
        loses=(STEPS, LEARNS),
        says="zero_grad()",
    ),
    Mutant(
        "train",
        "a sum in place of the mean",
        loop(("F.cross_entropy(model(x), y)", 'F.cross_entropy(model(x), y, reduction="sum")')),
        loses=(STEPS, LEARNS),
        says="The gradients of a batch were added up",
    ),
    Mutant(
        "train",
        "the sum divided by batch_size",
        loop(("F.cross_entropy(model(x), y)", 'F.cross_entropy(model(x), y, reduction="sum") / batch_size')),
        loses=(STEPS,),
        says="its sum was divided by batch_size",
    ),
    Mutant(
        "train",
        "the smaller last batch makes no step",
        loop(("range(0, len(order), batch_size)", "range(0, len(order) - batch_size + 1, batch_size)")),
        loses=(STEPS,),
        says="The last batch, which is smaller, was left out",
    ),
    Mutant(
        "train",
        "up the gradient",
        loop(("parameter.data -= lr", "parameter.data += lr")),
        loses=(STEPS, LEARNS),
        says="The weights moved up the gradient",
    ),
    Mutant(
        "train",
        "with momentum",
        loop(
            ("    parameters = list(model.parameters())\n",
             "    parameters = list(model.parameters())\n    u = [0.0 for _ in parameters]\n"),
            ("            for parameter in parameters:\n                parameter.data -= lr * parameter.grad\n",
             "            for i, parameter in enumerate(parameters):\n"
             "                u[i] = 0.9 * u[i] + parameter.grad\n"
             "                parameter.data -= lr * u[i]\n"),
        ),
        loses=(STEPS, LEARNS),
        says="These steps have momentum",
    ),
    Mutant(
        "train",
        "without a shuffle",
        loop(("np.random.default_rng((seed, epoch)).permutation(len(train_set))", "np.arange(len(train_set))")),
        loses=(LEARNS,),
        says="The batches were taken in the order in which the samples lie",
    ),
    Mutant(
        "train",
        "one shuffle for all epochs",
        loop(("default_rng((seed, epoch))", "default_rng(seed)")),
        loses=(LEARNS,),
        says="all 5 epochs took the samples in the order [",
    ),
    Mutant(
        "train",
        "the seed is not used",
        loop(("default_rng((seed, epoch))", "default_rng(epoch)")),
        loses=(LEARNS,),
        says="Do the shuffles depend on the seed?",
    ),
    Mutant(
        "train",
        "unseeded",
        loop(("default_rng((seed, epoch))", "default_rng()")),
        loses=(LEARNS,),
        says="a run could not be repeated",
    ),
    Mutant(
        "train",
        "one epoch too many",
        loop(("range(epochs)", "range(epochs + 1)")),
        loses=(STEPS,),
        says="There was one epoch too many",
    ),
    Mutant(
        "train",
        "the rate divided by the size of the batch",
        loop(("-= lr * parameter.grad", "-= lr / len(y) * parameter.grad")),
        loses=(STEPS,),
        says="divided by the batch's size",
    ),
    Mutant(
        "train",
        "the new weights are only named",
        loop(("parameter.data -= lr * parameter.grad", "parameter = parameter.data - lr * parameter.grad")),
        loses=(STEPS, LEARNS),
        says="The weights have not changed",
    ),
    Mutant(
        "train",
        "validated before each epoch",
        """
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
""",
        loses=(STEPS,),
        says="validation_set asked before the epoch",
    ),
    Mutant(
        "train",
        "ended when the validation error rises",
        loop(("            lowest, best = error, model.state_dict()\n",
              "            lowest, best = error, model.state_dict()\n        else:\n            break\n")),
        loses=(CHOOSES,),
        says="The training ended early",
    ),
    Mutant(
        "train",
        "the best model is another one",
        loop(("    parameters =", "    import copy\n    parameters ="), ("model.state_dict()", "copy.deepcopy(model)"),
             ("    model.load_state_dict(best)\n", "    model = best\n")),
        loses=(CHOOSES, OPENS),
        says="These are the weights of the last epoch",
    ),
    Mutant(
        "train",
        "the test error of a copy",
        loop(("    parameters =", "    import copy\n    parameters ="), ("model.state_dict()", "copy.deepcopy(model)"),
             ("    model.load_state_dict(best)\n    return test_set.error(model)",
              "    result = test_set.error(best)\n    for a, b in zip(parameters, best.parameters()):\n"
              "        a.data = a.data + 0 * b.data\n    return result")),
        loses=(CHOOSES, OPENS),
        says="These are the weights of the last epoch",
    ),
    Mutant(
        "train",
        "tested twice",
        loop(("    return test_set", "    print(test_set.error(model))\n    return test_set")),
        loses=(OPENS,),
        says="asked 2 times, expected once",
    ),
    Mutant(
        "train",
        "the weights of the last epoch",
        loop(("    model.load_state_dict(best)\n", "")),
        loses=(CHOOSES,),
        says="These are the weights of the last epoch",
    ),
    Mutant(
        "train",
        "the best weights are not copied",
        loop(
            ("model.state_dict()", "[parameter.data for parameter in parameters]"),
            ("    model.load_state_dict(best)\n",
             "    for parameter, kept in zip(parameters, best):\n        parameter.data[...] = kept\n"),
        ),
        loses=(CHOOSES,),
        says="was it a copy",
    ),
    Mutant(
        "train",
        "the worst epoch",
        loop(("error < lowest", "error > lowest"), ("lowest, best = 2.0, None", "lowest, best = -1.0, None")),
        loses=(CHOOSES,),
        says="These are the weights of the worst epoch",
    ),
    Mutant(
        "train",
        "chosen by the test set",
        loop(("error = validation_set.error(model)", "error = test_set.error(model)")),
        loses=(CHOOSES, OPENS),
        says="The test set has decided which epoch is best",
    ),
    Mutant(
        "train",
        "the test set is watched",
        loop(("        if error < lowest:", "        test_set.error(model)\n        if error < lowest:")),
        loses=(OPENS,),
        says="test_set.error was asked 16 times, expected once",
    ),
    Mutant(
        "train",
        "no validation",
        loop(("        error = validation_set.error(model)\n        if error < lowest:\n"
              "            lowest, best = error, model.state_dict()\n    model.load_state_dict(best)\n", "")),
        loses=(CHOOSES,),
        says="Without it nobody knows which epoch was the best",
    ),
    Mutant(
        "train",
        "tested before the best weights are put back",
        loop(("    model.load_state_dict(best)\n    return test_set.error(model)",
              "    result = test_set.error(model)\n    model.load_state_dict(best)\n    return result")),
        loses=(OPENS,),
        says="the model ends with other weights",
    ),
    Mutant(
        "train",
        "the validation error comes back",
        loop(("    return test_set.error(model)", "    return lowest")),
        loses=(OPENS,),
        says="test_set.error was asked 0 times",
    ),
    Mutant(
        "train",
        "the accuracy comes back",
        loop(("return test_set.error(model)", "return 1 - test_set.error(model)")),
        loses=(OPENS,),
        says="This is the accuracy",
    ),
    Mutant(
        "train",
        "drawn with replacement",
        loop((".permutation(len(train_set))", ".integers(0, len(train_set), len(train_set))")),
        loses=(LEARNS,),
        says="The batches were drawn with replacement",
    ),
    Mutant(
        "train",
        "each batch drawn from all samples",
        loop(("            x, y = train_set[order[start : start + batch_size]]\n",
              "            some = np.random.default_rng((seed, epoch, start))\n"
              "            x, y = train_set[some.choice(len(order), min(batch_size, len(order) - start), False)]\n")),
        loses=(LEARNS,),
        says="The batches were drawn with replacement",
    ),
    Mutant(
        "train",
        "seed + epoch",
        loop(("default_rng((seed, epoch))", "default_rng(seed + epoch)")),
        loses=(LEARNS,),
        says="The generator was made from seed + epoch",
    ),
    Mutant(
        "train",
        "from numpy's global generator",
        loop(("np.random.default_rng((seed, epoch))", "np.random")),
        loses=(LEARNS,),
        says="a run could not be repeated",
    ),
    Mutant(
        "train",
        "the rate falls",
        loop(("parameter.data -= lr *", "parameter.data -= lr / (1 + epoch) *")),
        loses=(STEPS,),
        says="The rate falls from epoch to epoch",
    ),
    Mutant(
        "train",
        "the rate times the size of the batch",
        loop(("parameter.data -= lr *", "parameter.data -= lr * batch_size *")),
        loses=(STEPS, LEARNS),
        says="The rate was multiplied by batch_size",
    ),
    Mutant(
        "train",
        "every epoch begins from the best weights",
        loop(("            lowest, best = error, model.state_dict()\n    model.load_state_dict(best)\n",
              "            lowest, best = error, model.state_dict()\n        model.load_state_dict(best)\n")),
        loses=(STEPS,),
        says="It began from the best weights so far",
    ),
    Mutant(
        "train",
        "chosen by the training set",
        loop(("        error = validation_set.error(model)\n",
              "        validation_set.error(model)\n"
              "        error = float((model(train_set.x).numpy().argmax(axis=1) != train_set.y).mean())\n")),
        loses=(CHOOSES,),
        says="were they best by the validation error",
    ),
    Mutant(
        "train",
        "the training set is shuffled in place",
        loop(("        order = np.random.default_rng((seed, epoch)).permutation(len(train_set))\n",
              "        order = np.random.default_rng((seed, epoch)).permutation(len(train_set))\n"
              "        train_set.x[:], train_set.y[:] = train_set.x[order], train_set.y[order]\n")),
        loses=(LEARNS,),
        says="train changed what it was given",
    ),
    Mutant(
        "train",
        "the mean of the batch is subtracted",
        loop(("            for parameter in parameters:\n                parameter.grad = None\n",
              "            x = x - x.mean(axis=0)\n"
              "            for parameter in parameters:\n                parameter.grad = None\n")),
        loses=(STEPS,),
        says="should move the weights by",
    ),
    Mutant(
        "train",
        "gradients are forgotten once an epoch",
        loop(("            for parameter in parameters:\n                parameter.grad = None\n", ""),
             ("        for start in", "        for parameter in parameters:\n            parameter.grad = None\n"
              "        for start in")),
        loses=(STEPS, LEARNS),
        says="zero_grad()",
    ),
    Mutant(
        "train",
        "gradients are forgotten between backward and the step",
        loop(("            loss.backward()\n", "            loss.backward()\n            model.zero_grad()\n"),
             ("lr * parameter.grad", "lr * (0 if parameter.grad is None else parameter.grad)")),
        loses=(STEPS, LEARNS),
        says="a zero_grad() between it and the step",
    ),
    Mutant(
        "train",
        "the first epoch is not asked about",
        loop(("        if error < lowest:", "        if epoch and error < lowest:"), ("lowest, best = 2.0, None",
              "lowest, best = 2.0, model.state_dict()")),
        loses=(STEPS,),
        says="The weights have not changed",
    ),
]  # fmt: skip

ALTERNATIVES = [
    Alternative(
        "train",
        "one generator for all epochs, the validation set asked twice",
        """
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
""",
    ),
    Alternative(
        "train",
        "the sampler of exercise 1, a model of its own, every epoch kept",
        """
import copy

def train(model, train_set, validation_set, test_set, lr, epochs, batch_size, seed):
    own, kept = copy.deepcopy(model), {}
    for epoch in range(epochs):
        for batch in minibatches(len(train_set), batch_size, seed, epoch):
            x, y = train_set[list(batch)]
            loss = F.cross_entropy(own(x), y)
            own.zero_grad()
            loss.backward()
            for parameter in own.parameters():
                parameter.data = (parameter.data - lr * parameter.grad).astype(np.float32)
        kept.setdefault(validation_set.error(own), own.state_dict())
    model.load_state_dict(kept[min(kept)])
    return float(test_set.error(model))
""",
    ),
    Alternative(
        "train",
        "minidl's loader and optimizer, gradients forgotten after the step",
        """
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
""",
    ),
    Alternative(
        "train",
        "from the arrays, the start counts as an epoch, the later of two equals",
        """
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
""",
    ),
]
