"""The errata in course/errata.md: what is printed goes wrong, what is right instead does not; a test for each entry."""

from __future__ import annotations

import copy
import re
from functools import partial

import numpy as np
import pytest

from course.setup.bootstrap import ROOT
from minidl import Tensor, cluster, data, kernels, nn, optim, parallel
from minidl import functional as F
from minidl.cluster import cost
from minidl.compress import DGC, ErrorFeedback, Threshold, TopK
from minidl.nn.experts import load_balancing_loss
from minidl.parallel import Pipeline, Synchronous, pipeline, train
from minidl.parallel.tensor import ColumnLinear, RowLinear, split_layers
from tests.parallel.jobs import blobs, small_job

LECTURES = ROOT / "course" / "lectures"
CURVATURE = np.array([1.0, 50.0])
BEGIN = np.array([-1.8, 0.8])


# Chapter 01


def test_the_gradient_of_the_last_layer_is_ready_first():
    model, ready = nn.models.MLP(4, 5, 6, 3), []
    layers = [name for name, _ in model.named_parameters() if name.endswith("weight")]
    for name, parameter in model.named_parameters():
        if name in layers:
            parameter.register_post_accumulate_grad_hook(lambda _, name=name: ready.append(name))
    model(Tensor(np.ones((2, 4), np.float32))).sum().backward()
    assert ready == layers[::-1]
    assert len(layers) == 3


# Chapter 02


def gradient(w, x, y, reduction="mean"):
    weight = Tensor(w.copy(), requires_grad=True)
    F.cross_entropy(Tensor(x) @ weight, y, reduction=reduction).backward()
    return np.asarray(weight.grad)


@pytest.fixture(scope="module")
def digits():
    train, _ = data.digits()
    return train.x.reshape(-1, 64).astype(np.float64), train.y


def test_a_sum_with_a_rate_is_the_mean_with_a_rate_that_is_larger_by_the_batch_size(digits):
    x, y = digits
    by_sum, by_mean = np.zeros((64, 10)), np.zeros((64, 10))
    for k in range(0, 512, 32):
        by_sum -= 0.5 / 32 * gradient(by_sum, x[k : k + 32], y[k : k + 32], "sum")
        by_mean -= 0.5 * gradient(by_mean, x[k : k + 32], y[k : k + 32])
    assert np.array_equal(by_sum, by_mean)


def test_the_variance_of_a_minibatch_gradient_falls_as_one_over_the_batch_size(digits):
    x, y = digits
    each = np.stack([gradient(np.zeros((64, 10)), x[k : k + 1], y[k : k + 1]).reshape(-1) for k in range(200)])
    exact, rng = each.mean(axis=0), np.random.default_rng(0)
    total = np.square(each - exact).sum(axis=1).mean()
    for size in (1, 16):
        means = (each[rng.integers(200, size=size)].mean(axis=0) for _ in range(1000))
        assert size * np.mean([np.square(mean - exact).sum() for mean in means]) == pytest.approx(total, rel=0.1)


def test_a_model_trained_towards_its_own_answers_becomes_certain_and_no_better(digits):
    x, y = digits
    w = np.random.default_rng(0).normal(0, 0.1, (64, 10))
    for _ in range(300):
        w -= 3.0 * gradient(w, x, (x @ w).argmax(axis=1))
    after = (x @ w).argmax(axis=1)
    assert F.cross_entropy(Tensor(x @ w), after).item() < 0.2
    assert (after != y).mean() > 0.7


def test_nesterov_diverges_with_the_printed_sign_whatever_the_index():
    def radius(sign, late, rate=0.01, mu=0.9):
        """The factor of a step in the long run, in the worse direction."""
        radii = []
        for curvature in CURVATURE:
            velocity = np.array([-rate * curvature, mu - sign * rate * curvature * mu])
            matrix = [[1, 1], velocity] if late else [np.array([1, 0]) + velocity, velocity]
            radii.append(abs(np.linalg.eigvals(np.array(matrix))).max())
        return max(radii)

    assert radius(+1, late=False) < 1
    assert radius(+1, late=True) < 1
    assert radius(-1, late=False) > 1
    assert radius(-1, late=True) > 1


def test_adagrad_with_the_present_gradient_under_the_sum_goes_uphill():
    """The loss is x / 4; its noisy slope is 4 in one case of four, else -1."""
    rng = np.random.default_rng(0)
    right, printed, squares = np.zeros(200), np.zeros(200), np.zeros(200)
    for t in range(1, 301):
        g = np.where(rng.random(200) < 0.25, 4.0, -1.0)
        squares += g**2
        right -= 0.1 * g / (np.sqrt(squares) + 1e-8)
        printed -= 0.1 * g / (np.sqrt(t * g**2) + 1e-8)
    assert right.mean() < -0.1
    assert printed.mean() > 0.5


def test_adam_that_keeps_its_corrected_means_freezes():
    ends = []
    for is_kept in (True, False):
        w, m, a = BEGIN, np.zeros(2), np.zeros(2)
        for t in range(1, 101):
            g = CURVATURE * w
            m, a = 0.9 * m + 0.1 * g, 0.99 * a + 0.01 * g**2
            corrected = m / (1 - 0.9**t), a / (1 - 0.99**t)
            m, a = corrected if is_kept else (m, a)
            w = w - 0.1 * corrected[0] / (np.sqrt(corrected[1]) + 1e-8)
        ends.append(np.linalg.norm(w))
    assert ends[0] > 1
    assert ends[1] < 0.1


def test_a_small_epsilon_inside_the_root_shortens_the_steps_of_small_gradients():
    weight = Tensor(np.zeros(1), requires_grad=True)
    optimizer = optim.Adam([weight], lr=1.0, eps=1e-8)
    weight.grad = np.array([1e-5])
    optimizer.step()
    inside = 1e-5 / np.sqrt(1e-5**2 + 1e-8)
    assert weight.data[0] == pytest.approx(-1, rel=0.01)
    assert inside == pytest.approx(0.1, rel=0.01)


# Chapter 04


def test_an_all_to_all_adds_nothing_up():
    def program(comm):
        x = np.arange(comm.size) + 10.0 * comm.rank
        return [float(chunk) for chunk in comm.all_to_all(list(x))], float(comm.all_reduce(x)[0])

    assert cluster.launch(program, nodes=3, on="simulation").results[0] == ([0.0, 10.0, 20.0], 30.0)


def test_halving_and_doubling_has_fewer_rounds_than_the_ring_and_the_same_bytes():
    def program(comm, algorithm):
        comm.all_reduce(np.zeros(128, np.float32), algorithm=algorithm)

    for algorithm, rounds in (("ring", 14), ("rabenseifner", 6)):
        ledger = cluster.launch(program, (algorithm,), 8, "simulation").trace.ledger()
        sent = {(rank["all_reduce"].messages, rank["all_reduce"].nbytes) for rank in ledger}
        assert sent == {(rounds, 2 * 7 * 16 * 4)}


def test_the_bandwidth_term_of_goyal_s_all_reduce_is_more_than_nine_tenths_of_its_time():
    alpha, beta, nbytes = 20e-6, 8 / 50e9, 100_000_000
    assert 2 * 31 / 32 * nbytes * beta > 0.9 * cost.all_reduce("rabenseifner", 32, nbytes, alpha, beta)
    assert 2 * nbytes * 8 / 0.125 == pytest.approx(12.8e9)


# Chapter 05


def test_overlapped_buckets_train_to_the_bits_of_a_run_without_overlap():
    run = partial(train, small_job(epochs=1), nodes=4, on="simulation", network="10gbe")
    with_overlap, without = (run(Synchronous(1e-4, "ring", overlap=overlap)) for overlap in (True, False))
    assert set(with_overlap.digests) == set(without.digests)
    assert sum(with_overlap.staleness.values()) == 0


def test_an_all_reduce_that_was_begun_asynchronously_has_ended_everywhere_before_anyone_updates():
    def program(comm):
        comm.compute(seconds=1.0 + comm.rank)
        comm.all_reduce(np.ones(4), async_op=True).wait()
        return comm.now()

    assert min(cluster.launch(program, nodes=3, on="simulation", network="10gbe").results) >= 3.0


def test_the_gradient_of_a_sum_grows_with_the_minibatch_and_that_of_the_mean_does_not():
    norms = {}
    for size in (1, 7):
        x, y, w = np.ones((size, 3)), np.zeros(size, np.int64), np.zeros((3, 2))  # the same sample several times
        norms[size] = [np.linalg.norm(gradient(w, x, y, reduction)) for reduction in ("mean", "sum")]
    assert norms[7] == pytest.approx([norms[1][0], 7 * norms[1][1]])


# Chapter 06


def test_t_mod_g_names_a_worker_that_does_not_exist_and_skips_the_last_one():
    workers, steps = 5, range(1, 21)
    assert {t % workers for t in steps} == set(range(workers))
    assert [(t - 1) % workers + 1 for t in steps] == 4 * list(range(1, workers + 1))


def test_the_lecture_quotes_the_published_abstract_of_dean_et_al():
    prose = " ".join(lecture("06a_staleness").replace("\n#", " ").split())
    assert '"30x larger than previously reported", on 16 million images of 21,000 categories' in prose


def lecture(name):
    return (LECTURES / f"{name}.py").read_text(encoding="utf-8")


# Chapter 07


@pytest.mark.parametrize(("first", "is_new"), [(0, False), (0, True), (1, False)])
def test_elastic_pulls_are_conserved_only_by_the_weights_before_the_update_and_worker_g_never_moves(first, is_new):
    before = np.random.default_rng(0).standard_normal(5)
    state = before.copy()  # four workers, and the centre
    for t in range(1, 401):
        worker = t % 4 - first
        if worker >= 0:  # the worker numbered 0 does not exist where numbers begin with 1
            pull = 0.2 * (state[worker] - state[-1])  # eta * rho: nothing moves without a rate
            state[worker] -= pull
            state[-1] += 0.2 * (state[worker] - state[-1]) if is_new else pull
    moved = state != before
    assert moved.tolist() == [True, True, True, first == 0, True]
    assert (abs(state.sum() - before.sum()) < 1e-12) is not is_new


# Chapter 08

FIGURE_3 = {"256": "23.60 ± 0.12", "8k": "23.74 ± 0.09", "16k": "24.79 ± 0.27", "32k": "27.55 ± 0.28",
            "64k": "33.96 ± 0.80"}  # fmt: skip
TABLES = {"26.22 ± 0.03", "41.67 ± 0.10", "23.68 ± 0.09", "24.84 ± 0.37", "25.88 ± 0.56"}
"""Tables 1 and 2a: the square root and the fixed rate at 8k, rate 0.2 at 256, none and constant warm-up at 8k."""


def test_page_and_lectures_have_the_errors_that_the_paper_prints_and_the_caption_has_that_of_another_rate():
    errata = (ROOT / "course" / "errata.md").read_text(encoding="utf-8")
    page = re.search(r"## Chapter 08\n(.*?)(?=\n## |\Z)", errata, re.DOTALL)[1]
    assert [size for size, error in FIGURE_3.items() if f"{error} % for {size}" not in page] == []
    for name in ("02a_noisy_gradients", "08a_linear_scaling", "08b_warm_up"):
        quoted = set(re.findall(r"\d\d\.\d\d ± \d\.\d\d", lecture(name)))
        assert quoted
        assert quoted <= set(FIGURE_3.values()) | TABLES
    assert re.search(r"say 23\.60 %; 23\.68 %\s+belongs to rate 0\.2", page)
    steps = r"learning rates\s+(# +)?of 0\.05, 0\.1\s.*and 0\.2 .*23\.60 ± 0\.12 and 23\.68 ± 0\.09"
    assert re.search(steps, lecture("02c_step_sizes"), re.DOTALL)
    assert re.search(r"23\.68 ± 0\.09 %\s+(# )?is\s+(# )?the\s+(# )?row of rate 0\.2", lecture("08a_linear_scaling"))


def test_a_large_minibatch_at_the_rate_of_a_small_one_has_not_learned_its_training_set():
    losses = []
    for size in (16, 512):
        optimizer = partial(optim.SGD, lr=0.05, momentum=0.9)
        job = parallel.Job(partial(nn.models.MLP, 64, 64, 10), data.digits, optimizer, batch_size=size, epochs=5)
        row = train(job, on=cluster.Simulation(trace="ledger")).history[-1]
        losses.append((row["loss"], row["test_loss"]))
    small, large = losses
    assert large[0] > 5 * small[0]
    assert large[1] - large[0] < small[1] - small[0]


# Chapter 09


class WithoutMagnitude(Threshold):
    """The misprint: sends entries above tau, not those of magnitude above tau."""

    def choose(self, flat):
        return np.flatnonzero(flat > self.tau)


def test_a_threshold_without_magnitude_sends_nothing_negative_and_its_residual_drifts():
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(1000).astype(np.float32) for _ in range(200)]
    wrong, right = ErrorFeedback(WithoutMagnitude(1.0)), ErrorFeedback(Threshold(1.0))
    assert min(wrong.decode(wrong.encode(each)).min() for each in given) == 0
    assert min(right.decode(right.encode(each)).min() for each in given) < -1
    assert wrong.residual.mean() < -5
    assert np.abs(right.residual).max() <= 1


def test_the_gradients_of_all_nodes_in_each_residual_are_sent_once_by_each_node():
    rng = np.random.default_rng(0)
    rounds = [1 + rng.standard_normal((5, 50)) for _ in range(40)]
    for is_own, times in ((True, 1), (False, 5)):
        keepers, total = [ErrorFeedback(TopK(0.1)) for _ in range(5)], np.zeros(50)
        for each in rounds:
            for keeper, own in zip(keepers, each, strict=True):
                total += keeper.decode(keeper.encode(own if is_own else each.sum(axis=0)))
        total += np.sum([keeper.residual for keeper in keepers], axis=0)
        np.testing.assert_allclose(total, times * np.sum(rounds, axis=(0, 1)))


def test_a_late_gradient_counts_at_the_rate_of_its_sending_unless_the_residual_holds_rate_times_gradient():
    rates = [0.1] * 5 + [0.01] * 5
    for holds_rate, expected in ((False, 10 * 0.01), (True, sum(rates))):
        keeper, total = ErrorFeedback(TopK(0.5)), 0.0
        for step, rate in enumerate(rates):
            entries = np.array([1e6 if step < 9 else 0.0, 1.0]) * (rate if holds_rate else 1.0)
            total += keeper.decode(keeper.encode(entries))[1] * (1.0 if holds_rate else rate)
        assert total == pytest.approx(expected)


def moved(compressor, momentum):
    """How far an entry has moved after 10 gradients of 1 and 290 of 0; it is sent in every 10th step."""
    velocity, total = 0.0, 0.0
    for step in range(300):
        huge = 0.0 if step % 10 == 9 else 1e9  # the larger one of two entries is sent
        sent = compressor.decode(compressor.encode(np.array([huge, 1.0 if step < 10 else 0.0])))
        velocity = momentum * velocity + float(sent[1])
        total += velocity
    return total


def test_late_momentum_is_not_lost_masking_forgets_and_a_velocity_that_is_never_cleared_conserves_all():
    formula = 10 / 0.1 - 0.9 * (1 - 0.9**10) / 0.1**2
    assert moved(DGC(0.5, warmup=(), momentum_correction=False), 0.9) == pytest.approx(100)
    assert moved(DGC(0.5, 0.9, warmup=()), 0.0) == pytest.approx(formula) == pytest.approx(41.381, abs=5e-4)
    corrected = DGC(1.0, 0.9, warmup=(), masking=False)  # one entry: the velocity of the huge one would never fade
    sent = [corrected.decode(corrected.encode(np.array([1.0 if step < 10 else 0.0])))[0] for step in range(300)]
    assert sum(sent) == pytest.approx(100)


def test_the_megabytes_of_the_table_are_mebibytes():
    nbytes = 4 * sum(parameter.size for parameter in nn.models.ResNet(50).parameters())
    assert (f"{nbytes / 2**20:.2f}", f"{nbytes / 1e6:.2f}") == ("97.49", "102.23")


# Chapter 10

# Narayanan et al. (arXiv:2104.04473), table 1: h, layers, TFLOP/s of a GPU, the percentage printed
PUBLISHED = [
    (2304, 24, 137, 44), (3072, 30, 138, 44), (4096, 36, 142, 46), (6144, 40, 135, 43), (8192, 48, 138, 44),
    (10_240, 60, 140, 45), (12_288, 80, 148, 47), (16_384, 96, 155, 50), (20_480, 105, 163, 52), (25_600, 128, 163, 52),
]  # fmt: skip


def test_the_printed_percentages_count_the_repeated_forward_and_the_model_itself_has_33_to_39():
    own = []
    for h, layers, speed, printed in PUBLISHED:
        assert round(100 * speed / 312) == printed
        executed = 96 * (1 + 2048 / (6 * h) + 51_200 / (16 * layers * h))
        needed = 72 * (1 + 2048 / (6 * h) + 51_200 / (12 * layers * h))
        own.append(round(100 * speed / 312 * needed / executed))
    assert (min(own), max(own), own[-1]) == (33, 39, 39)


class WithoutMessage(ColumnLinear):
    """A layer by columns that sends nothing in backward either."""

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


def test_a_layer_by_columns_without_a_message_in_backward_has_the_right_output_and_a_wrong_gradient_below():
    model = nn.Sequential(nn.Linear(5, 12), nn.GELU(), nn.Linear(12, 4)).double()
    x = np.random.default_rng(0).normal(size=(6, 5))

    def program(comm, layout):
        divided = split_layers(copy.deepcopy(model), comm, layout)
        inputs = Tensor(x, requires_grad=True)
        y = divided(inputs)
        (y * y).sum().backward()
        return y.numpy(), inputs.grad

    whole = cluster.launch(program, ({},), nodes=1, on="simulation").results[0]
    for first, is_right in ((ColumnLinear, True), (WithoutMessage, False)):
        results = cluster.launch(program, ({"0": first, "2": RowLinear},), nodes=3, on="simulation").results
        for output, below in results:
            np.testing.assert_allclose(output, whole[0], atol=1e-12)
            assert np.allclose(below, whole[1], rtol=0, atol=1e-12) == is_right
        assert np.allclose(sum(below for _, below in results), whole[1]) == (not is_right)


# Chapter 11


def test_gpipe_and_1f1b_are_idle_for_k_minus_1_of_m_plus_k_minus_1_and_differ_in_memory():
    for stages, micro_batches in ((2, 4), (4, 8), (8, 8)):
        for kind in (pipeline.GPipe, pipeline.OneFOneB):
            idle = pipeline.simulate(kind(stages, micro_batches)).bubble_of_total
            assert idle == pytest.approx((stages - 1) / (micro_batches + stages - 1))
    assert pipeline.peak_memory(pipeline.simulate(pipeline.GPipe(4, 8)).schedule) == [8, 8, 8, 8]
    assert pipeline.peak_memory(pipeline.simulate(pipeline.OneFOneB(4, 8)).schedule) == [4, 3, 2, 1]


def test_schedules_without_a_bubble_come_close_to_the_sentence():
    assert pipeline.simulate(pipeline.ZeroBubbleH2(4, 8)).bubble_of_total == 0
    share = [pipeline.simulate(pipeline.PipeDream(4, count)).bubble_of_total for count in (10, 100, 1000)]
    assert share == sorted(share, reverse=True)
    assert share[-1] < 0.005


def test_a_pipeline_sends_activations_at_its_cuts_and_data_parallelism_all_gradients():
    """A model of 21,507 weights, with 8 numbers a sample at the cut: 30 samples a step."""
    model, optimizer = partial(nn.models.MLP, 5, 100, 8, 100, 100, 3), partial(optim.SGD, lr=0.01)
    job = small_job(
        model=model, data=partial(blobs, 60, "float32"), optimizer=optimizer, schedule=None, batch_size=30, epochs=1
    )
    sent = []
    for strategy in (Pipeline(2, 5, cuts=(2,)), Synchronous(algorithm="ring")):
        ledger = train(job, strategy, 2, on="simulation").trace.ledger()
        sent.append(sum(rank[name].nbytes for rank in ledger for name in ("isend", "all_reduce") if name in rank))
    assert sent[0] < sent[1] / 5


def test_each_stage_has_its_own_parameters_only():
    job = small_job(model=partial(nn.models.MLP, 5, 8, 7, 6, 3), data=partial(blobs, 60, "float32"))

    class Counting(Pipeline):
        def run(self, session):
            super().run(session)
            session.record("names", sorted(name for name, p in session.model.named_parameters() if p.held))

    first, second = (names[0] for names in train(job, Counting(2, 4), 2, on="simulation").recorded["names"])
    assert not set(first) & set(second)
    assert len(first) + len(second) == len(list(job.build_model().parameters()))


# Chapter 13


def test_the_formulas_of_selective_recomputation_differ_by_three_times_the_products_that_are_computed_again():
    """Korthikanti et al. (2022), with one text of 2,048 positions and 51,200 words."""

    def step_of(factor, s, h, blocks):
        return 72 * s * blocks * h**2 * (1 + factor * s / h + 51200 / (12 * blocks * h))

    for h, blocks, printed, right in ((12288, 96, "2.7 %", "0.9 %"), (20480, 105, "1.6 %", "0.5 %")):
        step, *others = (step_of(factor, 2048, h, blocks) for factor in (1 / 6, 1 / 3, 2 / 9))
        assert [f"{100 * (other / step - 1):.1f} %" for other in others] == [printed, right]
        assert others[1] - step == pytest.approx(blocks * 4 * 2048**2 * h)


def test_selective_recomputation_computes_two_products_again():
    b, s, h, blocks = 2, 40, 64, 2
    operations = []
    for recompute in ("nothing", "selective"):
        model = nn.models.GPT(n_layer=blocks, n_embd=h, n_head=2, block_size=s, vocab_size=9)
        if recompute == "selective":
            nn.checkpointing(model, "selective")
        loss = model(np.arange(b * s).reshape(b, s) % 9).sum()
        with kernels.counted() as work:
            loss.backward()
        operations.append(work.flops)
    products = blocks * 4 * b * s**2 * h
    assert products < operations[1] - operations[0] < 1.2 * products  # softmax comes on top


# Chapter 14


def test_the_load_balancing_loss_is_below_alpha_where_the_less_busy_expert_is_the_likelier_one_and_evens_out_the_load():
    logits = Tensor(np.log([[0.51, 0.49]] * 3 + [[0.1, 0.9]] * 2), requires_grad=True)
    chosen = logits.numpy().argmax(axis=1)
    loss = load_balancing_loss(F.softmax(logits, axis=1), chosen)
    assert loss.item() == pytest.approx(2 * (0.6 * 0.346 + 0.4 * 0.654)) == pytest.approx(0.94, abs=0.002)
    loss.backward()
    assert (np.asarray(logits.grad)[:, 0] > 0).all()  # descent lowers the busy expert for each token
    even = Tensor(np.array([[0.8, 0.2], [0.2, 0.8]]))
    assert load_balancing_loss(even, even.numpy().argmax(axis=1)).item() == pytest.approx(1)
