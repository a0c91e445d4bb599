"""Answers to the last exercise of chapter 02: training loops, with one planted mistake each, or written otherwise."""

from __future__ import annotations

from tests.mutants import Alternative, Mutant

STEPS = "each step is one of minibatch SGD, that of the smaller last batch too"
LEARNS = "it learns from digits that lie sorted by class"
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


TRAINING_MUTANTS = [
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
        says="the weights changed after test_set.error was asked",
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
]  # fmt: skip

TRAINING_ALTERNATIVES = [
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
