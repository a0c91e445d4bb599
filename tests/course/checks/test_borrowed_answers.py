"""Answers that borrow from the library, or from the checks, earn no point."""

from __future__ import annotations

import pytest

from course.judging import Status
from course.judging.judged_notebook import judge_notebook
from course.notebooks.notebook_file import read_notebook
from course.notebooks.roles import role_of
from course.setup.bootstrap import ROOT
from tests.tiers import exhaustively

pytestmark = pytest.mark.timeout(300)

TENSORS = """
    from minidl import Tensor
    a, b = Tensor(x, requires_grad=True), Tensor(y, requires_grad=True)
"""

BACKPROPAGATION = {
    "vjp_mul": f"def vjp_mul(g, x, y):{TENSORS}    (a * b).backward(g)\n    return a.grad, b.grad",
    "vjp_max": "import minidl\ndef vjp_max(g, x):\n    a = minidl.Tensor(x, requires_grad=True)\n"
    "    a.max(axis=1).backward(g)\n    return a.grad",
    "vjp_matmul": "from minidl import functional as F, Tensor as T, grad\ndef vjp_matmul(g, X, W):\n"
    "    a, b = T(X, requires_grad=True), T(W, requires_grad=True)\n    return grad((a @ b) * g, [a, b])",
    "vjp_broadcast_add": f"def vjp_broadcast_add(g, x, y):{TENSORS}    (a + b).backward(g)\n    return a.grad, b.grad",
    "check_gradient": "def check_gradient(f, gradient, x):\n    return not gradient.bug",
}

MINIBATCH_SGD = {
    "minibatches": "from minidl.data import DistributedSampler\ndef minibatches(n, batch_size, seed, epoch):\n"
    "    s = DistributedSampler(n, 1, 0, True, seed)\n    s.set_epoch(epoch)\n    order = list(s)\n"
    "    return [order[i : i + batch_size] for i in range(0, n, batch_size)]",
    "momentum_step": "from minidl import nn, optim\nimport numpy as np\n"
    "def momentum_step(w, state, gradient, lr, mu, form):\n    p = nn.Parameter(w)\n    p.grad = gradient\n"
    "    s = optim.SGD([p], lr=lr, momentum=mu)\n    s.step()\n    return p.data, state",
    "adam_step": "import minidl.kernels.reference as kernels\n"
    "def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):\n"
    "    from minidl import optim, nn\n    p = nn.Parameter(w)\n    p.grad = gradient\n"
    "    optim.Adam([p], lr=lr, betas=(beta1, beta2), eps=eps).step()\n    return p.data, m, v",
    "train": "def train(*arguments):\n    from course.checks.minibatch_sgd import noisy_digits\n"
    "    return noisy_digits.mean_gradient",
}

MESSAGES_AND_COLLECTIVES = {
    "broadcast_tree": "from minidl.cluster.collectives import broadcast_tree",
    "ring_reduce_scatter": "import functools\nfrom minidl.cluster import collectives as c\nimport numpy as np\n"
    "f = functools.partial(c.reduce_scatter_ring, op='sum')\n"
    "def ring_reduce_scatter(comm, chunks):\n    return f(comm, np.concatenate(chunks))",
    "ring_all_gather": "import sys\nimport minidl.cluster\nfound = sys.modules['minidl.cluster.collectives']\n"
    "def ring_all_gather(comm, chunk):\n    return found.all_gather_ring(comm, chunk)",
    "ring_all_reduce": "def ring_all_reduce(comm, x):\n    import importlib\n"
    "    c = importlib.reload(importlib.import_module('minidl.cluster.collectives.all_reduce'))\n"
    "    c.all_reduce_ring(comm, x)\n    return x",
    "recursive_doubling": "def recursive_doubling(comm, x):\n    from minidl.cluster.collectives import ALL_REDUCE\n"
    "    x = x.copy()\n    ALL_REDUCE['recursive_doubling'](comm, x, 'sum')\n    return x",
    "ring_seconds": "from minidl.cluster import cost\ndef ring_seconds(p, nbytes, alpha, beta, gamma=0.0):\n"
    "    return cost.all_reduce('ring', p, nbytes, alpha, beta, gamma, itemsize=8)",
    "recursive_doubling_seconds": "def recursive_doubling_seconds(p, nbytes, alpha, beta, gamma=0.0):\n"
    "    from course.checks.messages_and_collectives.collective_costs import seconds\n"
    "    return seconds('recursive_doubling', p, nbytes, alpha, beta, gamma)",
    "crossover": "import subprocess, sys\ndef crossover(p, alpha, beta, gamma=0.0):\n"
    "    code = f'from minidl.cluster.cost.formulas import all_reduce as a; print({p}, {alpha}, {beta}, {gamma})'\n"
    "    return float(subprocess.run([sys.executable, '-c', code], capture_output=True).stdout)",
    "is_ring": "def is_ring(sends, p, nbytes):\n"
    "    from course.checks.messages_and_collectives.ring_lookalikes import PROGRAMS, run\n"
    "    return any(run(name, p, nbytes // 8)[0] == sends and PROGRAMS[name].is_ring for name in PROGRAMS)",
}

OPERATORS = {
    "im2col": "from minidl import Tensor, functional\ndef im2col(x, w, stride, padding, product):\n"
    "    return functional.conv2d(Tensor(x), Tensor(w), stride=stride, padding=padding).data",
    "winograd": "def winograd(x, w):\n"
    "    from course.checks.operators.counted_filters import by_tiles\n    return by_tiles(x, w, '')",
    "micro_batches": "def micro_batches(B, measured, limit):\n"
    "    from course.checks.operators import batch_plans\n    return batch_plans.least(B, measured, limit)",
    "fuse": "def fuse(program, results):\n    import minidl.functional.elementwise as e\n"
    "    return [([i], [e.add(i, 0)]) for i in range(len(program))]",
}

LARGE_MINIBATCHES = {
    "scheduled_rate": "from minidl import optim, nn\nimport numpy as np\n"
    "def scheduled_rate(step, base_lr, *settings):\n    p = nn.Parameter(np.zeros(1))\n"
    "    s = optim.SGD([p], lr=base_lr)\n    optim.schedules.LinearLR(s, 0.25, total_iters=4)\n"
    "    return s.param_groups[0]['lr']",
    "corrected_run": "def corrected_run(w, gradient, rates, momentum):\n    from minidl import nn, optim\n"
    "    p = nn.Parameter(w)\n    optim.SGD([p], lr=rates[0], momentum=momentum)\n    return p.data, w",
    "gradient_noise_scale": "from minidl.parallel import noise_scale\n"
    "def gradient_noise_scale(small, large, b_small, b_large):\n"
    "    s, l = ((x**2).sum() / len(x) for x in (small, large))\n"
    "    return noise_scale.from_two_sizes(b_small, s, b_large, l).scale",
    "noise_of_ranks": "from minidl.parallel import noise_scale\ndef noise_of_ranks(comm, gradient, b):\n"
    "    noise = noise_scale.over_nodes(comm, gradient, b)\n    return gradient, noise.squared_norm, noise.trace",
    "lars_step": "from minidl import kernels\n"
    "def lars_step(weights, gradients, velocities, lr, momentum, weight_decay, trust):\n"
    "    for w, g, v in zip(weights, gradients, velocities):\n"
    "        kernels.current().lars(w, g, v, lr, momentum, weight_decay)",
}

GRADIENT_COMPRESSION = {
    "sparsify": "from minidl import compress\ndef sparsify(gradient, residual, threshold):\n"
    "    c = compress.Threshold(threshold)\n    return c.entries(c.encode(gradient + residual))",
    "top_k_step": "from minidl.compress import TopK\ndef top_k_step(comm, w, gradient, residual, k, lr):\n"
    "    return w - lr * TopK(k / len(w)).begin_all_reduce(gradient + residual, comm)()",
    "corrected_entries": "from minidl.compress import DGC\n"
    "def corrected_entries(gradient, velocity, waiting, m, k, masking):\n"
    "    c = DGC(k / len(gradient), momentum=m)\n    return c.entries(c.encode(gradient))",
    "sparse_sum": "from minidl import compress\ndef sparse_sum(comm, indices, values, n):\n"
    "    dense = np.zeros(n, np.float32)\n    dense[indices] = values\n"
    "    return compress.Threshold(0.0, all_reduce='recursive_doubling').begin_all_reduce(dense, comm)()",
}

PIPELINES = {
    "gpipe": "from minidl.parallel import pipeline\ndef gpipe(K, M, s):\n"
    "    return [action.short for action in pipeline.GPipe(K, M).actions(s)]",
    "one_f_one_b": "import minidl.parallel.pipeline as p\nmake = p.schedule\ndef one_f_one_b(K, M, s):\n"
    "    return str(make('1f1b', K, M)).splitlines()[s].split()[2:]",
    "run_stage": "def run_stage(comm, actions, M, inputs, w, lr, forward, backward):\n"
    "    from minidl.parallel.pipeline.interpreter import execute\n    return execute(actions, forward)",
    "deadlock": "from minidl.parallel.pipeline import Listed, simulate\ndef deadlock(schedule):\n"
    "    simulate(Listed.read([' '.join(line) for line in schedule]))\n    return {}",
    "bubble": "from minidl.parallel import pipeline\ndef bubble(K, M, v):\n"
    "    timeline = pipeline.simulate(pipeline.Interleaved(K, M, v))\n"
    "    return timeline.bubble_of_ideal, timeline.bubble_of_total",
}

TENSOR_PARALLELISM = {
    "column_linear": "from minidl.parallel.tensor import ColumnLinear\ndef column_linear(comm, x, w, b, g):\n"
    "    return ColumnLinear(x, w)",
    "mlp": "from minidl import parallel\ndef mlp(comm, x, w1, b1, w2, b2, g):\n"
    "    return parallel.tensor.split_layers(comm)",
    "embedding": "import minidl.parallel.tensor as t\nmake = t.VocabularyEmbedding\n"
    "def embedding(comm, ids, table, start, g):\n    return make(table)(ids)",
    "cross_entropy": "def cross_entropy(comm, logits, targets, start):\n"
    "    from minidl.parallel.tensor import vocabulary_cross_entropy\n"
    "    return vocabulary_cross_entropy(logits, targets, comm)",
    "summa": "from minidl.parallel import products\ndef summa(comm, pr, pc, width, a, b):\n"
    "    grid = products.Grid(*row_and_column(comm, pr, pc))\n"
    "    return products.summa(a, b, grid, a.shape[1] * pc, width).data",
}

MEMORY = {
    "memory_and_traffic": "def memory_and_traffic(P, N, stage, is_mixed, r):\n"
    "    from course.checks.memory import node_bytes\n"
    "    return node_bytes.nbytes(P, N, stage, is_mixed, r), node_bytes.sent(P, N, stage, r)",
    "shard_optimizer": "from minidl.parallel import Sharded\n"
    "def shard_optimizer(comm, weights, gradients, state, update, max_norm):\n    return Sharded(stage=1), state",
    "checkpoints": "from minidl.nn import segments\ndef checkpoints(sizes):\n"
    "    return [one.start for one in segments.equal(len(sizes), 2)]",
    "recomputed_gradients": "def recomputed_gradients(forward, backward, n, keep, x):\n"
    "    import minidl\n    return minidl.recomputation.checkpoint(lambda x: forward(0, x), x), []",
    "fetch_schedule": "def fetch_schedule(n, size, room):\n"
    "    from course.checks.memory import unit_schedules\n    return unit_schedules.best(n, room // size)",
}

PUTTING_IT_TOGETHER = {
    "route": "from minidl.nn import experts\ndef route(scores, k, capacity):\n"
    "    choices = np.argsort(-scores, axis=1, kind='stable')[:, :k]\n"
    "    return experts.route(choices, scores.shape[1], capacity).slots, scores, 1.0",
    "moe_step": "from minidl.parallel import experts as e\nfrom minidl import Tensor\n"
    "def moe_step(comm, x, slots, gates, experts, capacity, target):\n"
    "    return e.dispatched(Tensor(np.zeros((comm.size * len(experts), capacity, x.shape[1]))), comm)",
    "step_time": "from minidl.parallel import planner\ndef step_time(plan, batch, model, cluster):\n"
    "    dp, pp, tp, b = plan\n    arrangement = planner.Arrangement(batch, dp, pp, tp, micro_batch=b)\n"
    "    return [arrangement.micro_batches] * 5",
    "best_plan": "def best_plan(model, cluster, batch, seconds):\n"
    "    from course.checks.putting_it_together.hidden_plans import Problem\n"
    "    return Problem(model, cluster, batch).best",
}

NOT_FOOLING_THE_MASSES = {
    "find_trick": "from minidl.parallel import report_card\ndef find_trick(claim, rows):\n"
    "    return report_card.problems(rows, name='method')[0]",
}

AVERAGING = {
    "elastic": "from minidl import parallel\n"
    "def elastic(comm, x, centre, gradient, lr, alpha, period, steps):\n"
    "    return parallel.ElasticAveraging(alpha, period, 'synchronous')",
    "local_sgd": "import minidl.parallel as p\nstrategy = p.LocalSGD\n"
    "def local_sgd(comm, x, gradient, lr, period, steps, first):\n    return strategy(period=period)",
    "rounds_and_words": "from minidl.cluster import cost\ndef rounds_and_words(p, n, steps, period, first):\n"
    "    return steps // period, cost.all_reduce('ring', p, n, 0, 1)",
    "mixing_matrix": "from minidl.parallel import mixing\ndef mixing_matrix(neighbours):\n"
    "    return mixing.matrix([set(each) for each in neighbours])",
    "consensus_factor": "import sys, minidl.parallel\n"
    "found = sys.modules['minidl.parallel.averaging.mixing'].spectral_gap\n"
    "def consensus_factor(W):\n    return 1 - found(W)",
    "majority": "from minidl.parallel import PartialAllReduce\ndef majority(comm, p, n, drawn):\n"
    "    rounds = PartialAllReduce(machines(comm, p), len(drawn), np.zeros(n), drawn.__getitem__)\n"
    "    return rounds.contribute(comm.recv(p + comm.rank), 1), np.zeros(n)",
}

SAYS = (
    "course.checks holds what the checks compare with: an answer may not import it",
    "which is to be built without the library's version",
    "'Asked' object has no attribute 'bug'",
)


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("04_messages_and_collectives", MESSAGES_AND_COLLECTIVES),
        *exhaustively(("01_backpropagation", BACKPROPAGATION), ("02_minibatch_sgd", MINIBATCH_SGD)),
        *exhaustively(("08_large_minibatches", LARGE_MINIBATCHES), ("09_gradient_compression", GRADIENT_COMPRESSION)),
        *exhaustively(("07_averaging", AVERAGING)),
        *exhaustively(("10_tensor_parallelism", TENSOR_PARALLELISM), ("11_pipelines", PIPELINES)),
        *exhaustively(("03_operators", OPERATORS), ("13_memory", MEMORY)),
        *exhaustively(("14_putting_it_together", PUTTING_IT_TOGETHER)),
        *exhaustively(("16_not_fooling_the_masses", NOT_FOOLING_THE_MASSES)),
    ],
)
def test_no_borrowed_answer_earns_a_point(name: str, answers: dict[str, str]) -> None:
    reference = read_notebook(ROOT / "solutions" / name / f"{name}.ipynb")
    notebook = read_notebook(ROOT / "solutions" / name / f"{name}.ipynb")
    for cell in notebook.cells:
        if role_of(cell).get("solution") and cell.cell_type == "code":
            cell.source = answers.get(cell["id"], "")
    judgement = judge_notebook(notebook, reference)
    assert judgement.remarks == []
    for exercise in answers:
        for outcome in judgement.outcomes[f"check_{exercise}"]:
            fault = outcome.first_fault
            assert outcome.points == 0, exercise
            assert fault.status is Status.RAISED, exercise
            assert any(sentence in fault.message for sentence in SAYS), fault.message
