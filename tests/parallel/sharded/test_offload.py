"""Sharded(offload=): the same weights with a host behind the device; the device's bytes, the link's, and the time."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

import minidl
from minidl import cluster, nn, optim, parallel
from minidl.kept_arrays import kept_bytes
from minidl.parallel import Offload, Sharded, Strategy, Synchronous
from tests.parallel.jobs import blobs, normalized, small_job, tokens, two_groups, weights
from tests.parallel.sharded.test_sharded import Tied, adamw, small_gpt
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

WAYS = [(1, "optimizer"), (2, "optimizer"), (3, "optimizer"), (3, "all")]
NODE = cluster.Node(1.3e9, 1e10)


def engine(link=(3e-6, 0.7e9), host=0.6, device=1e9, node=NODE):
    return cluster.Simulation(node=node, memory=cluster.Memory(device, link, host))


@pytest.mark.parametrize("nodes", [3, *exhaustively(1, 2)])
def test_with_offload_weights_have_the_bits_of_synchronous(nodes):
    job = small_job(model=Tied, data=partial(blobs, 34), optimizer=two_groups)  # the last minibatch has 2 samples
    truth = parallel.train(job, Synchronous(algorithm="ordered", accumulate=2), nodes, "simulation")
    for stage, what in WAYS:
        strategy = Sharded(stage, offload=Offload(what), algorithm="ordered", accumulate=2, bucket_mb=2e-4)
        report = parallel.train(job, strategy, nodes, engine())
        assert set(report.digests) == set(truth.digests)
        assert [row["test_loss"] for row in report.history] == [row["test_loss"] for row in truth.history]


LAMB, LARS = partial(optim.LAMB, lr=0.02), partial(optim.LARS, lr=0.5)


@pytest.mark.parametrize(
    ("optimizer", "delayed"),
    [
        (LAMB, True),
        (two_groups, False),
        *exhaustively((LAMB, False), (LARS, False), (LARS, True), (two_groups, True)),
    ],
)
def test_norms_are_those_of_whole_parameters(optimizer, delayed):
    job = small_job(optimizer=optimizer, clip_norm=0.3)
    truth = parallel.train(job, Late() if delayed else Synchronous(), 1, "simulation")
    for stage, what in WAYS[: 3 if delayed else 4]:
        report = parallel.train(job, Sharded(stage, offload=Offload(what, delayed), bucket_mb=2e-4), 3, engine())
        assert np.abs(weights(report) - weights(truth)).max() < 1e-12


@dataclass(frozen=True)
class Late(Strategy):
    """On one node: the gradients are those of the weights before the last update, but for the first of an epoch."""

    def run(self, session):
        for batch in session.batches():
            fresh = session.weights()
            if session.step:
                session.set_weights(before)  # noqa: F821
            session.zero_grad()
            session.loss(batch).backward()
            session.set_weights(fresh)
            before = fresh  # noqa: F841
            session.update()


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_delayed_update_is_that_of_gradients_of_staleness_one(stage):
    job = small_job(optimizer=adamw, epochs=4)
    late, report = (
        parallel.train(job, strategy, 1, on)
        for strategy, on in ((Late(), "simulation"), (Sharded(stage, offload=Offload(delayed=True)), engine()))
    )
    assert report.digests == late.digests
    assert [row["lr"] for row in report.history] == [row["lr"] for row in late.history]
    assert np.abs(weights(report) - weights(parallel.train(job, Synchronous(), 1, "simulation"))).max() > 1e-3


def test_on_processes_the_same_program_has_the_bits_of_a_simulated_one():
    job = small_job(model=Tied, optimizer=adamw, epochs=2)
    for stage, offload in ((2, Offload(delayed=True)), (3, Offload("all"))):
        strategy = Sharded(stage, offload=offload, algorithm="ordered", bucket_mb=2e-4)
        real, simulated = parallel.train(job, strategy, 2, deadline=150), parallel.train(job, strategy, 2, engine())
        assert real.digests == simulated.digests
        for mine, theirs in zip(real.recorded["device"], simulated.recorded["device"], strict=True):
            assert (mine[0].fetched, mine[0].sent_back) == (theirs[0].fetched, theirs[0].sent_back) > (0, 0)
            assert mine[0].at_peak["weights"] == theirs[0].at_peak["weights"]


def test_layers_with_statistics_and_a_gpt_are_trained_with_offload():
    texts = partial(tokens, 11)
    for model, data in ((normalized, blobs), (small_gpt, texts), (lambda: nn.checkpointing(small_gpt(), 2), texts)):
        job = small_job(model=model, data=data, optimizer=adamw, batch_size=8, epochs=1)
        truth = parallel.train(job, Synchronous(algorithm="ordered"), 2, "simulation")
        for stage, what in ((2, "optimizer"), (3, "all")):
            report = parallel.train(job, Sharded(stage, offload=Offload(what), algorithm="ordered"), 2, engine())
            assert report.digests == truth.digests


@pytest.mark.parametrize("precision", ["float16", *exhaustively("bfloat16")])
def test_in_sixteen_bits_the_host_keeps_the_masters_and_the_bits_are_those_of_synchronous(precision):
    job = small_job(data=partial(blobs, dtype="float32"), optimizer=adamw, precision=precision, clip_norm=0.4)
    truth = parallel.train(job, Synchronous(algorithm="ordered"), 2, "simulation")
    for stage, what in WAYS:
        report = parallel.train(job, Sharded(stage, offload=Offload(what), algorithm="ordered"), 2, engine())
        assert report.digests == truth.digests
        device = report.recorded["device"][0][0].at_peak
        assert device["optimizer"] == 0 < device["weights"]


def test_a_run_goes_on_with_and_without_offload(tmp_path):
    job, longer = small_job(optimizer=adamw, epochs=1), small_job(optimizer=adamw, epochs=3)
    truth = parallel.train(longer, Synchronous(algorithm="ordered"), 2, "simulation")
    strategies = [Synchronous(algorithm="ordered")]
    strategies += [Sharded(stage, offload=Offload(what), algorithm="ordered") for stage, what in WAYS]
    for first, then in pairwise([*strategies, strategies[0]]):
        on = [engine() if isinstance(strategy, Sharded) else "simulation" for strategy in (first, then)]
        parallel.train(job, first, 2, on[0], folder=tmp_path)
        report = parallel.train(longer, then, 2, on[1], resume=tmp_path / "checkpoint.npz")
        assert report.digests == truth.digests
    delayed = Sharded(2, offload=Offload(delayed=True))
    whole = parallel.train(longer, delayed, 2, engine())
    parallel.train(job, delayed, 2, engine(), folder=tmp_path)
    assert parallel.train(longer, delayed, 2, engine(), resume=tmp_path / "checkpoint.npz").digests == whole.digests


# ---- bytes ----

LAYERS, WIDTH = 9, 61


def deep():
    return nn.models.MLP(5, *[WIDTH] * LAYERS, 3)


UNIT = 4 * (WIDTH**2 + WIDTH)  # bytes of the weights of a layer in the middle
PSI = (LAYERS - 1) * UNIT // 4 + 6 * WIDTH + 3 * WIDTH + 3


def deep_job(**changes):
    settings = {"model": deep, "data": partial(blobs, dtype="float32"), "optimizer": optim.Adam, "schedule": None}
    return small_job(**(settings | {"epochs": 1, "batch_size": 20} | changes))  # 3 minibatches


def use_of(strategy, nodes, **memory):
    return parallel.train(deep_job(), strategy, nodes, engine(**memory)).recorded["device"][0][0]


@pytest.mark.parametrize("nodes", [1, 3])
def test_a_device_holds_the_bytes_of_the_formulas(nodes):
    bucket = {"bucket_mb": UNIT / 1e6}  # a layer each

    def kept(strategy):
        parts = use_of(strategy, nodes).at_peak
        return {name: parts[name] for name in ("weights", "optimizer")}, parts["buffers"]

    whole, own = 4 * PSI, 4 * PSI / nodes
    ragged = pytest.approx  # ranges differ by a number
    state, _ = kept(Sharded(2, **bucket))
    assert state == {"weights": whole, "optimizer": ragged(2 * own, abs=200)}
    for stage in (1, 2):
        state, moving = kept(Sharded(stage, offload=Offload(), **bucket))
        assert state == {"weights": whole, "optimizer": 0}
        if stage == 2:  # a bucket that was filled, and one that travels
            assert moving == pytest.approx(2 * UNIT, rel=0.1)  # they are of whole parameters
    state, moving = kept(Sharded(3, offload=Offload("all")))
    assert state == {"weights": ragged(UNIT, abs=64), "optimizer": 0}  # one layer, however many there are
    assert moving == pytest.approx(3 * UNIT, abs=64)  # ... and the weights that are on their way
    state, _ = kept(Sharded(3, offload=Offload()))
    assert state == {"weights": ragged(own + UNIT, abs=200), "optimizer": 0}


@pytest.mark.parametrize(("precision", "number"), [("float32", 4), ("bfloat16", 2)])
@pytest.mark.parametrize("nodes", [1, 3])
def test_the_link_carries_weights_and_gradients_once_and_weights_twice_if_the_host_keeps_them(nodes, precision, number):
    updates, whole, slack = 3, number * PSI, number * 2 * LAYERS

    def use_of(strategy, nodes):
        return parallel.train(deep_job(precision=precision), strategy, nodes, engine()).recorded["device"][0][0]

    for delayed in (False, True):
        use = use_of(Sharded(2, offload=Offload(delayed=delayed)), nodes)
        assert use.fetched == pytest.approx(updates * whole / nodes, abs=updates * slack)
        assert use.sent_back == pytest.approx(updates * whole / nodes, abs=updates * slack)
    use = use_of(Sharded(3, offload=Offload("all")), nodes)
    readings = 2 * updates + 1 + 1  # forward and backward of each; the evaluation; the hash at the end
    assert use.fetched == pytest.approx(readings * whole / nodes, abs=readings * slack)
    assert use.sent_back == pytest.approx(updates * whole / nodes, abs=updates * slack)


def test_a_model_that_does_not_fit_says_so_and_fits_with_offload():
    strategies = [Sharded(2), Sharded(2, offload=Offload(), bucket_mb=0.01), Sharded(3, offload=Offload("all"))]
    peaks = [use_of(strategy, 1).peak for strategy in strategies]
    assert peaks[0] > 2 * peaks[1] > 2 * peaks[2]
    for strategy, peak in zip(strategies, peaks, strict=True):
        assert use_of(strategy, 1, device=peak).peak == peak
        with pytest.raises(cluster.DeviceError, match=rf"the device of rank 0 needs {peak:,} bytes .*weights"):
            use_of(strategy, 1, device=peak - 1)
    assert sum(use_of(strategies[0], 1).at_peak.values()) == peaks[0]


@pytest.mark.parametrize(("stage", "what"), [(2, "optimizer"), (3, "all")])
def test_with_checkpointing_a_device_holds_the_inputs_of_all_segments_and_what_one_keeps(stage, what):
    model = nn.checkpointing(deep(), 5)
    job = deep_job(model=model, batch_size=60, data=partial(blobs, 600, "float32"))
    strategy = Sharded(stage, offload=Offload(what), bucket_mb=0.01)
    use = parallel.train(job, strategy, 1, engine()).recorded["device"][0][0]
    assert use.moment == "in backward (recomputed)"
    x, (start, end, _) = job.build_data().train[:60][0], model.forward.segments[-1]
    of_last = minidl.Tensor(np.ones((60, WIDTH), np.float32), requires_grad=True)
    again = nn.run_stages(model.stages()[start:end], of_last, first=start)
    kept = kept_bytes([model(x)], model.parameters()) + kept_bytes([again], [of_last, *model.parameters()])
    assert use.at_peak["activations"] == pytest.approx(kept, rel=0.02)  # the loss


# ---- time ----


def timed(strategy, link, host=0.6):
    """The report, and the seconds of its three minibatches."""
    report = parallel.train(deep_job(), strategy, 1, engine(link, host))
    return report, report.history[-1]["seconds"]


def moments(report, operation, lane_kind):
    """When the transfers of the first step began, which take no time over this link."""
    begins = [e.start for e in report.trace.events if e.operation == operation and e.kind == lane_kind]
    return begins[: len(begins) // 3] if operation == "send_back" else begins


def update_seconds(report):
    spans = [e.end - e.start for e in report.trace.events if e.label == "update" and e.lane and e.kind == "compute"]
    assert len(spans) == 3
    return spans[0]


FREE = (0.0, np.inf)
LINKS = [(1e-6, 3e9), (2e-6, 60e6), (5e-6, 11e6)]  # hidden, in between, and the slowest of all


def chain(ready, seconds):
    """When the last of several transfers ends, one after the other, each begun when it is ready or later."""
    end = 0.0
    for moment, duration in zip(ready, seconds, strict=True):
        end = max(end, moment) + duration
    return end


@pytest.mark.parametrize("link", LINKS)
def test_a_step_takes_as_long_as_the_closed_form_says(link):
    """T = max over the buckets k of (when it is ready + the transfers of k and those after it) + update + fetches."""
    memory, strategy = cluster.Memory(link=link), Sharded(2, offload=Offload(), bucket_mb=UNIT / 1e6)
    free, at_best = timed(strategy, FREE)
    sizes = [e.nbytes for e in free.trace.events if e.operation == "send_back" and e.kind == "send"][: LAYERS + 1]
    transfers = [memory.time(size) for size in sizes]
    update, fetches = update_seconds(free), sum(transfers)
    computing = at_best / 3 - update
    ready = moments(free, "send_back", "send")
    step = chain(ready, transfers)
    _, seconds = timed(strategy, link)
    assert seconds == pytest.approx(3 * (step + update + fetches), rel=1e-9)
    at_the_end = [seconds for moment, seconds in zip(ready, transfers, strict=True) if moment > computing * (1 - 1e-9)]
    assert 0 < len(at_the_end) < 4
    is_hidden = step == pytest.approx(computing + sum(at_the_end), rel=1e-9)  # all the others
    assert is_hidden == (link == LINKS[0])


@pytest.mark.parametrize("host", [0.005, 0.6])
@pytest.mark.parametrize("link", [LINKS[1], *exhaustively((LINKS[0],), (LINKS[2],))])
def test_a_delayed_update_hides_behind_the_next_gradients_or_they_behind_it(link, host):
    memory, bucket = cluster.Memory(link=link), {"bucket_mb": UNIT / 1e6}
    free, _ = timed(Sharded(2, offload=Offload(), **bucket), FREE, host)
    sizes = [e.nbytes for e in free.trace.events if e.operation == "send_back" and e.kind == "send"][: LAYERS + 1]
    transfers = [memory.time(size) for size in sizes]
    update, step = update_seconds(free), chain(moments(free, "send_back", "send"), transfers)
    _, seconds = timed(Sharded(2, offload=Offload(delayed=True), **bucket), link, host)
    fetches = sum(transfers)
    assert seconds == pytest.approx(step + 2 * (max(step, update) + fetches) + update + fetches, rel=1e-9)
    assert (update > step) == (host == 0.005)


@pytest.mark.parametrize("link", [LINKS[1], *exhaustively((LINKS[0],), (LINKS[2],))])
def test_units_are_fetched_while_the_one_before_computes(link):
    """Each unit begins when the one before has computed and its weights are there: max(computing, fetching)."""
    memory, strategy = cluster.Memory(link=link), Sharded(3, offload=Offload("all"))
    free, _ = timed(strategy, FREE)
    units = 2 * (LAYERS + 1)
    begins = moments(free, "fetch", "receive")[:units]  # of unit k, when unit k - 1 begins to compute
    fetched = [e.nbytes for e in free.trace.events if e.operation == "fetch" and e.kind == "receive"][:units]
    sent = [e.nbytes for e in free.trace.events if e.operation == "send_back" and e.kind == "send"][: LAYERS + 1]
    ready = moments(free, "send_back", "send")
    computing = [b - a for a, b in pairwise([*begins[1:], *ready[-2:]])]  # the last two end with their gradients
    begin, ends = memory.time(fetched[0]), []
    for k, seconds in enumerate(computing):
        after = memory.time(fetched[k + 1]) if k + 1 < units else 0.0
        ends.append(begin + seconds)
        begin = max(begin + seconds, begin + after)
    last = chain(ends[LAYERS + 1 :], map(memory.time, sent))
    _, seconds = timed(strategy, link)
    assert seconds == pytest.approx(3 * (last + update_seconds(free)), rel=1e-9)


# ---- what is refused ----


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Offload("weights"), ValueError, "Offload: what must be 'optimizer' or 'all', got 'weights'"),
        (lambda: Offload(delayed=1), TypeError, "Offload: delayed must be True or False, got 1"),
        (lambda: Offload("all", delayed=True), ValueError, 'give "optimizer", or leave out delayed'),
        (
            lambda: Sharded(2, offload="optimizer"),
            TypeError,
            'offload must be a parallel.Offload, such as Offload("opt',
        ),
        (lambda: Sharded(2, offload=Offload("all")), ValueError, "give stage=3, got 2"),
    ],
)
def test_an_offload_that_cannot_be_is_refused(make, error, text):
    with pytest.raises(error) as refused:
        make()
    assert text in str(refused.value)


def with_scale(parameters):
    return optim.SGD([*parameters, SCALE], lr=0.1)


SCALE = nn.Parameter(np.array(1.3))


def test_a_delayed_update_of_what_the_host_and_the_device_both_change_is_refused():
    delayed = Sharded(2, offload=Offload(delayed=True))
    with pytest.raises(ValueError, match="in float16 an update decides by which factor the next loss is scaled"):
        parallel.train(small_job(precision="float16"), delayed, 1, engine())
    with pytest.raises(cluster.RankFailed, match="the optimizer has others, such as those of the loss"):
        parallel.train(small_job(optimizer=with_scale), delayed, 1, engine())


def test_a_strategy_that_does_not_count_a_device_is_refused_on_one():
    with pytest.raises(ValueError, match=r"Synchronous does not count the bytes of a device.*Sharded\(stage=1\)"):
        parallel.train(small_job(), Synchronous(), 2, engine())


def test_the_timeline_of_a_run_whose_forward_waits_for_weights_shows_whole_steps():
    report, seconds = timed(Sharded(3, offload=Offload("all")), LINKS[1])
    start, end = report.timeline(steps=2).axes[0].get_xlim()  # in milliseconds
    assert end - start == pytest.approx(2e3 * seconds / 3, rel=0.01)


@pytest.mark.parametrize("nodes", [1, 2])
def test_offload_without_a_second_tier_is_refused_in_a_sentence(nodes):
    with pytest.raises(cluster.DeviceError, match="have one tier of memory, and no host to offload to"):
        parallel.train(small_job(), Sharded(2, offload=Offload()), nodes, "simulation")
