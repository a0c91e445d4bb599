"""Every way to train of the core against the workshop's strategy, on the README's network and digits and a tiny GPT."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import numpy as np
import pytest

from minidl import cluster, compress, data, nn, optim, parallel
from minidl.mini import data_parallel as core
from minidl.mini import model_parallel
from minidl.mini import nn as mini_nn
from minidl.mini.cluster import simulate
from minidl.parallel import Session, Strategy
from tests.mini.jobs import (
    ALPHA,
    BETA,
    NETWORK,
    SIZES,
    by_the_core,
    by_the_workshop,
    job,
    messages,
    minibatches,
    trained_messages,
    weights_of,
)
from tests.tiers import exhaustively

NODES = [1, 2, 3, *exhaustively(4, 8)]
SPEED = 1e10  # flops a second of a rank of the workshop, for work that a program states


@pytest.mark.parametrize("nodes", NODES)
def test_synchronous_is_the_workshops_synchronous_and_so_are_its_messages(nodes):
    """1,437 digits: shares of a minibatch are uneven, those of the last one, of 29 digits, too."""
    report = by_the_workshop(job(epochs=2), parallel.Synchronous(algorithm="ring", overlap=False), nodes)
    run = by_the_core(job(epochs=2), core.synchronous, nodes)
    for weights in run.results:
        np.testing.assert_allclose(weights, weights_of(report), atol=1e-6, rtol=0)
    sent, nbytes = messages(run)
    broadcast = nodes - 1
    flags = 46 * 2 * (nodes - 1) * 8 * 4  # for each of 8 tensors the workshop's vector says whether it has a gradient
    assert trained_messages(report, "all_reduce") == (
        sent - broadcast,
        nbytes - broadcast * run.results[0].nbytes + flags,
    )


@dataclass(frozen=True)
class InOneVector(Strategy):
    """The workshop's session with the core's messages: a broadcast and a ring of all weights, and stated work."""

    def run(self, session: Session) -> None:
        session.set_weights(session.comm.broadcast(session.weights()))
        for batch in session.batches():
            session.model.zero_grad()
            (session.mean_loss(session.model(batch.x), batch) * batch.weight).backward()
            session.comm.compute(flops=6 * session.weights().size * batch.y.size)
            session.set_gradient(session.comm.all_reduce(session.gradient(), algorithm="ring"))
            session.update()


@pytest.mark.parametrize("nodes", NODES)
def test_a_step_takes_the_workshops_seconds_and_bytes(nodes):
    report = by_the_workshop(job(), InOneVector(), nodes)
    run = by_the_core(job(), core.synchronous, nodes, speed=SPEED)
    assert run.seconds == pytest.approx(report.history[-1]["seconds"], abs=1e-9)
    assert messages(run) == trained_messages(report)
    np.testing.assert_allclose(run.results[0], weights_of(report), atol=1e-6, rtol=0)


def in_float64(job):
    """The job with weights and images of double precision."""

    def model():
        made = nn.models.MLP(*SIZES)
        for parameter in made.parameters():
            parameter.data = parameter.data.astype(np.float64)
        return made

    def splits():
        train, test = (data.Dataset(each.x.astype(np.float64), each.y) for each in job.build_data())
        return data.Splits(train, test, classes=tuple("0123456789"))

    return replace(job, model=model, data=splits)


@pytest.mark.parametrize("nodes", NODES)
def test_shards_of_adams_states_make_adams_steps(nodes):
    adam = in_float64(job(optimizer=lambda p: optim.Adam(p, lr=0.004)))  # it divides by small numbers
    report = by_the_workshop(adam, parallel.Synchronous(algorithm="ring", overlap=False), nodes)
    optimizers = []

    def optimizer():
        optimizers.append(mini_nn.Adam(lr=0.004))
        return optimizers[-1]

    run = by_the_core(adam, core.sharded_states, nodes, optimizer)
    np.testing.assert_allclose(run.results[0], weights_of(report), atol=1e-6, rtol=0)
    assert sum(optimizer.m.size for optimizer in optimizers) == run.results[0].size
    whole = by_the_core(adam, core.synchronous, nodes, lambda: mini_nn.Adam(lr=0.004))
    assert messages(run) == messages(whole)
    assert run.seconds == pytest.approx(whole.seconds, abs=1e-9)


@pytest.mark.parametrize("nodes", NODES)
@pytest.mark.parametrize(
    ("strategy", "way"),
    [
        (parallel.LocalSGD(period=4, algorithm="ring"), partial(core.local_sgd, period=4)),
        (parallel.Gossip("ring"), core.gossip),
    ],
    ids=["local SGD", "gossip"],
)
def test_models_that_are_averaged_are_the_workshops(strategy, way, nodes):
    shared = job(samples=1152, batch_size=48)  # shares of equal size: the core does not weigh them; 24 steps
    report = by_the_workshop(shared, strategy, nodes)
    run = by_the_core(shared, way, nodes)
    np.testing.assert_allclose(np.mean(run.results, axis=0), weights_of(report), atol=1e-6, rtol=0)
    assert messages(run) == trained_messages(report)
    if isinstance(strategy, parallel.LocalSGD):
        assert run.seconds == pytest.approx(report.history[-1]["seconds"], abs=1e-9)


@pytest.mark.parametrize("nodes", NODES)
def test_gossip_is_the_workshops_where_shares_are_uneven(nodes):
    ragged = job(samples=211, batch_size=37)
    run = by_the_core(ragged, core.gossip, nodes)
    report = by_the_workshop(ragged, parallel.Gossip("ring"), nodes)
    np.testing.assert_allclose(np.mean(run.results, axis=0), weights_of(report), atol=1e-6, rtol=0)


def test_the_work_of_a_text_is_counted_by_tokens_and_named():
    rng = np.random.default_rng(0)
    model = mini_nn.gpt(31, 9, blocks=1, heads=2, width=12, rng=rng)
    x = rng.integers(0, 31, (5, 9))
    for way, flops in ((core.synchronous, [6 * 45]), (IN_MICRO_BATCHES, [2 * 9] * 5 + [4 * 9] * 5)):
        run = simulate(lambda comm, way=way: way(comm, model, mini_nn.SGD(0.1), [(x, x)]), 1, 0, 0)
        seconds = [work.end - work.start for work in run.work]
        assert seconds == pytest.approx([n * model.weights().size / 1e9 for n in flops])
        assert [work.label for work in run.work][-1] == ("gradient" if way is core.synchronous else "B4")


IN_MICRO_BATCHES = partial(model_parallel.pipeline, schedule=model_parallel.gpipe, micro_batches=5)


class OneMatrix(nn.Module):
    """All weights in one parameter: for one, the workshop's TopK is the core's, which takes the largest of all."""

    def __init__(self):
        self.flatten, self.linear = nn.Flatten(), nn.Linear(64, 10, bias=False)

    def forward(self, x):
        return self.linear(self.flatten(x))


class MiniMatrix(mini_nn.Linear):
    def __init__(self):
        super().__init__(64, 10, np.random.default_rng(0))
        del self.bias

    def __call__(self, x):
        return x @ self.weight.mT


@pytest.mark.parametrize("nodes", NODES)
def test_top_k_with_error_feedback_is_the_workshops_and_so_are_bytes_and_residuals(nodes):
    one = job(samples=640, model=OneMatrix)
    strategy = parallel.Synchronous(compressor=compress.ErrorFeedback(compress.TopK(0.03)), overlap=False)
    report = by_the_workshop(one, strategy, nodes)
    first = next(one.build_model().parameters()).numpy().reshape(-1).copy()

    def program(comm):
        model = MiniMatrix()
        model.set_weights(first)
        return core.compressed(comm, model, mini_nn.SGD(0.05, 0.9), minibatches(one), density=0.03)

    run = simulate(program, nodes, ALPHA, BETA)
    np.testing.assert_allclose(run.results[0], weights_of(report), atol=1e-6, rtol=0)
    sent, nbytes = messages(run)
    broadcast = nodes - 1
    assert trained_messages(report, "all_gather") == (sent - broadcast, nbytes - broadcast * first.nbytes)
    steps, k = 10, 20  # 3 % of 640 weights, rounded up
    assert nbytes - broadcast * first.nbytes == steps * nodes * (nodes - 1) * k * 8


def test_top_k_sends_and_keeps_what_the_workshop_does_and_both_add_up_to_the_gradients():
    rng, feedback = np.random.default_rng(4), compress.ErrorFeedback(compress.TopK(0.07))
    gradients, sent = [rng.normal(0.2, 3.1, 211).astype(np.float32) for _ in range(9)], []

    class Network:
        """A network of one rank, which keeps what is gathered and the residual that the caller then has."""

        rank, size = 0, 1

    class Gradients:
        """A model whose gradients are given."""

        def __init__(self):
            self.left = iter(gradients)

        def weights(self):
            return np.zeros(211, np.float32)

    class Keep:
        def step(self, weights, gradient):
            sent.append(gradient)
            return weights

    model = Gradients()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core, "gradient_at", lambda *_: next(model.left))
        core.compressed(Network(), model, Keep(), ((np.zeros(1), np.zeros(1)) for _ in gradients), density=0.07)
    for gradient, message in zip(gradients, sent, strict=True):
        np.testing.assert_array_equal(message, feedback.decode(feedback.encode(gradient)))
    np.testing.assert_allclose(np.sum(sent, 0) + feedback.residual, np.sum(gradients, 0), rtol=1e-5, atol=1e-5)


def own_minibatches(of, workers, comm):
    """The minibatches of one worker's shard, pass after pass, as the workshop deals them."""
    train = of.build_data().train
    sampler = data.DistributedSampler(len(train), workers, comm.rank, seed=of.seed) if comm.rank < workers else None
    loader = data.DataLoader(train, of.batch_size, sampler=sampler)
    for epoch in count():
        loader.set_epoch(epoch)
        yield from ((x.reshape(len(x), -1), y) for x, y in loader)


class InStatedTime(parallel.ParameterServer):
    def backpropagation(self, session):
        backpropagate = super().backpropagation(session)

        def in_stated_time(batch):
            backpropagate(batch)
            session.comm.compute(flops=6 * session.weights().size * len(batch.x))

        return in_stated_time


@pytest.mark.parametrize("workers", NODES)
def test_a_server_makes_the_workshops_updates_with_the_same_staleness_in_the_same_order(workers):
    asynchronous = job(samples=1200, batch_size=25)  # every worker's shard is whole minibatches
    report = by_the_workshop(asynchronous, InStatedTime(), workers, beta=0.0)  # requests are larger than the core's
    run = by_the_core(
        asynchronous,
        partial(core.parameter_server, updates=48),
        workers + 1,
        batches=partial(own_minibatches, asynchronous, workers),
        beta=0.0,
        speed=SPEED,
    )
    weights, staleness = run.results[-1]
    assert staleness == report.recorded["staleness"][-1]
    assert max(staleness) == workers - 1
    np.testing.assert_allclose(weights, weights_of(report), atol=1e-6, rtol=0)
    leave = workers  # the workshop's workers say that they leave, one message each
    assert len(run.messages) == trained_messages(report)[0] - leave
    pushed = [message.end for message in run.messages if message.dst == workers and message.nbytes]
    assert pushed[47] == pytest.approx(
        report.history[-1]["seconds"], abs=1e-9
    )  # the last update; workers go on a little


# A tiny GPT, in float64: adam's steps magnify the rounding of float32


def text_job(epochs=1):
    tokens = np.random.default_rng(2).integers(0, 31, 24 * 9)
    x, y = tokens.reshape(24, 9), np.roll(tokens, -1).reshape(24, 9)

    def model():
        gpt = nn.models.GPT(vocab_size=31, block_size=9, n_layer=2, n_head=2, n_embd=12)
        for parameter in gpt.parameters():
            parameter.data = parameter.data.astype(np.float64) * 8
        return gpt

    def splits():
        return data.Splits(data.Dataset(x, y), data.Dataset(x[:4], y[:4]), classes=tuple(map(str, range(31))))

    def loss(logits, labels):
        from minidl import functional as F

        return F.cross_entropy(logits.reshape(-1, 31), labels.reshape(-1))

    return parallel.Job(
        model=model,
        data=splits,
        loss=loss,
        optimizer=lambda p: optim.Adam(p, lr=0.003),
        batch_size=12,
        epochs=epochs,
        seed=3,
    )


@pytest.mark.parametrize("nodes", NODES)
@pytest.mark.parametrize("way", [core.synchronous, core.sharded_states], ids=lambda way: way.__name__)
def test_a_tiny_gpt_is_trained_as_by_the_workshop_with_its_messages_bytes_and_seconds(way, nodes):
    text = text_job(epochs=2)
    report = by_the_workshop(text, InOneVector(), nodes)
    first = np.concatenate([parameter.numpy().reshape(-1) for parameter in text.build_model().parameters()])

    def program(comm):
        model = mini_nn.gpt(31, 9, blocks=2, heads=2, width=12, rng=np.random.default_rng(0))
        model.set_weights(first)
        loader = data.DataLoader(text.build_data().train, 12, shuffle=True, seed=3)
        return way(comm, model, mini_nn.Adam(0.003), ((x, y) for _ in range(2) for x, y in loader))

    run = simulate(program, nodes, ALPHA, BETA, [SPEED] * nodes)
    names = [name for name, _ in text.build_model().named_parameters()]
    expected = np.concatenate([report.checkpoint.model[name].reshape(-1) for name in names])
    np.testing.assert_allclose(run.results[0], expected, atol=1e-6, rtol=0)
    assert messages(run) == trained_messages(report)
    assert run.seconds == pytest.approx(report.history[-1]["seconds"], abs=1e-9)


WAYS = {
    "synchronous": core.synchronous,
    "sharded_states": core.sharded_states,
    "local_sgd": partial(core.local_sgd, period=2),
    "gossip": core.gossip,
    "pipeline": partial(model_parallel.pipeline, schedule=model_parallel.one_f_one_b, micro_batches=5),
    "tensor_parallel": model_parallel.tensor_parallel,
}


@pytest.mark.parametrize(
    ("way", "nodes"),
    [
        *((way, nodes) for way in WAYS for nodes in (2, 3)),
        *exhaustively(*((way, nodes) for way in WAYS for nodes in (1, 4, 8) if way != "pipeline" or nodes < 8)),
    ],
)
def test_the_workshops_simulation_runs_the_cores_program_to_the_same_bits_and_seconds(way, nodes):
    """A network so large that messages exceed the 64 KiB below which the workshop's `send` does not wait."""
    digits = job(samples=320, batch_size=160)

    def program(comm):
        model = mini_nn.mlp(64, 701, 150, 91, 10, rng=np.random.default_rng(0))
        return WAYS[way](comm, model, mini_nn.SGD(0.05, 0.9), minibatches(digits))

    ours = simulate(program, nodes, ALPHA, BETA, [SPEED] * nodes)
    theirs = cluster.launch(program, nodes=nodes, on="simulation", network=NETWORK)
    for a, b in zip(ours.results, theirs.results, strict=True):
        np.testing.assert_array_equal(a, b)
    assert ours.seconds == pytest.approx(theirs.seconds, abs=1e-9)
    ledger = theirs.trace.ledger()
    assert messages(ours) == (
        sum(op.messages for rank in ledger for op in rank.values()),
        sum(op.nbytes for rank in ledger for op in rank.values()),
    )
