"""What the parts of the course end in: the reader's function is found, trains a network, and its run is recorded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from course.commands import result
from course.notebooks.notebook_file import read_notebook
from course.results import glyph_resnet, history, python_gpt, trial
from course.results.answer import NoAnswerError, definitions, function_of
from course.results.parts import PARTS
from minidl import cluster
from tests.course import small_course


def notebook(tmp_path: Path, *sources: str, check: str = "") -> Path:
    cells = [small_course.cell("code", f"c{i:02}", source) for i, source in enumerate(sources)]
    cells.append(small_course.cell("code", "check_f", check, grade=True, points=1))
    path = tmp_path / "04_x.ipynb"
    small_course.write(path, small_course.notebook(cells, "1"))
    return path


def needed(path: Path, name: str) -> Any:
    student = read_notebook(path)
    return definitions(student, student, name)


def answer(path: Path, name: str) -> Any:
    return function_of(needed(path, name), name, path)


def test_a_function_comes_with_the_imports_and_functions_of_other_cells(tmp_path):
    path = notebook(
        tmp_path,
        "import numpy as np",
        "TWO = 2\n\ndef twice(x):\n    return TWO * x",
        "def f(x):\n    return np.sum(twice(x))",
    )
    assert answer(path, "f")(np.ones(3)) == 6


def test_experiments_checks_magics_and_broken_cells_do_no_harm(tmp_path):
    path = notebook(
        tmp_path,
        "print(1 / 0)",
        "%matplotlib inline\ndef g():\n    return 1",
        "def broken(:",
        "wrong = 1 / 0",
        "def f():\n    wrong = g()\n    return wrong",
        check="raise SystemExit",
    )
    assert answer(path, "f")() == 1


def test_only_what_the_function_needs_is_kept_on_its_lines(tmp_path):
    path = notebook(
        tmp_path,
        "x = slow()\n\n@staticmethod\ndef g():\n    return K\n\nx = slow()",
        "try:\n    K = 1\nexcept NameError:\n    K = 2\nprint(x)",
        "def f(x):\n    return [g() for _ in x]\n\nf(x)",
    )
    kept = [cell.source.rstrip("\n") for cell in needed(path, "f").cells]
    assert kept == [
        "\n\n@staticmethod\ndef g():\n    return K",
        "try:\n    K = 1\nexcept NameError:\n    K = 2",
        "def f(x):\n    return [g() for _ in x]",
    ]


def test_a_missing_or_broken_function_is_said_in_a_sentence(tmp_path):
    with pytest.raises(NoAnswerError, match="defines no function f"):
        needed(notebook(tmp_path, "x = 1"), "f")
    with pytest.raises(NoAnswerError, match=r"The cell of f is not Python: .*line 2"):
        needed(notebook(tmp_path, "def f(x):\n    return x +"), "f")


LETTERS = glyph_resnet.Settings(depth=8, n_train=52, n_test=26, minibatch=26, steps=3, evaluate_every=2)
TEXT = python_gpt.Settings(n_layer=1, n_head=1, n_embd=8, block_size=16, n_chars=5_000, minibatch=6, steps=3)


def adam_step(w: Any, m: Any, v: Any, t: int, gradient: Any, lr: float, beta1: float, beta2: float, eps: float) -> Any:
    m, v = beta1 * m + (1 - beta1) * gradient, beta2 * v + (1 - beta2) * gradient**2
    return w - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps), m, v


def sum_at_rank_0(comm: Any, x: Any) -> Any:
    """A sum by another way than the library's ring; a new array, as an answer may return."""
    total = comm.reduce(x.copy())
    return comm.broadcast(x if total is None else total)


def test_the_letters_are_learned_by_the_given_rule():
    told, rates = [], {}

    def noted(w: Any, m: Any, v: Any, t: int, gradient: Any, lr: float, *betas: float) -> Any:
        rates[t] = lr
        return adam_step(w, m, v, t, gradient, lr, *betas)

    long = glyph_resnet.train(noted, LETTERS, lambda step, row: told.append((step, row is not None)))
    assert rates == pytest.approx({1: LETTERS.lr, 2: 0.75 * LETTERS.lr, 3: 0.25 * LETTERS.lr})
    assert told == [(1, False), (2, True), (3, True)]
    assert [row["step"] for row in long.rows] == [2, 3]
    mine, theirs = (
        glyph_resnet.train(rule, replace(LETTERS, steps=1)) for rule in (adam_step, glyph_resnet.library_rule)
    )
    for ours, library in zip(mine.model.parameters(), theirs.model.parameters(), strict=True):
        np.testing.assert_allclose(ours.numpy(), library.numpy(), atol=1e-4)


def weights(all_reduce: Any, nodes: int) -> dict[str, Any]:
    result: dict[str, Any] = cluster.launch(python_gpt.node, (all_reduce, TEXT), nodes, "simulation").results[0][0]
    return result


def test_two_nodes_train_the_gpt_as_one_node_does():
    alone, together = weights(python_gpt.library_all_reduce, 1), weights(python_gpt.library_all_reduce, 2)
    for name, values in alone.items():
        np.testing.assert_allclose(together[name], values, atol=1e-4)


def test_the_gradients_of_the_gpt_are_those_that_the_given_all_reduce_returns():
    mine, theirs = weights(sum_at_rank_0, 2), weights(python_gpt.library_all_reduce, 2)
    unsummed = weights(lambda comm, x: x, 2)
    assert all(np.allclose(mine[name], theirs[name], atol=1e-6) for name in theirs)
    assert not all(np.allclose(unsummed[name], theirs[name], atol=1e-6) for name in theirs)


@pytest.mark.timeout(300)
def test_the_gpt_is_trained_on_processes_and_writes_a_text():
    trained = python_gpt.train(sum_at_rank_0, replace(TEXT, steps=1))
    assert [row["step"] for row in trained.rows] == [1]
    assert len(python_gpt.written(trained.model, 5, "def ")) == 9
    took = {name: values for name, *values in trained.function}
    assert took["calls"] == ["2", "1"]
    assert took["messages of a node in a call"] == ["1", "2"]
    assert took["rounds (messages one after the other)"] == ["2", "2"]
    assert all(took["time of a call (median)"])


def test_the_rate_rises_then_falls_to_a_tenth():
    settings = python_gpt.Settings()
    rates = [python_gpt.learning_rate(step, settings) for step in range(settings.steps)]
    assert max(rates) == pytest.approx(settings.lr)
    assert rates[0] < rates[settings.warm_up // 2] < rates[settings.warm_up]
    assert rates[-1] == pytest.approx(settings.lr / 10, rel=1e-3)


def test_calls_are_counted_and_the_library_is_measured_in_some_of_the_steps():
    trained = glyph_resnet.train(adam_step, replace(LETTERS, steps=12))
    arrays = len(list(trained.model.parameters()))
    assert trained.function[0] == ["calls", f"{12 * arrays}", f"{10 * arrays}"]
    assert len(history.compared(1_300)) == len(history.compared(10)) == 10
    assert history.compared(2) == {0, 1}


ADAM = """
    m, v = beta1 * m + (1 - beta1) * gradient, beta2 * v + (1 - beta2) * gradient**2
    m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
"""
RING = """
    p, me = comm.size, comm.rank
    chunks = np.array_split(x, p)
    def passed(chunk):
        return comm.sendrecv(chunk, (me + 1) % p, (me - 1) % p)
    for step in range(p - 1):
        chunks[(me - step - 1) % p][...] += passed(chunks[(me - step) % p])
    for step in range(p - 1):
        chunks[(me - step) % p][...] = passed(chunks[(me - step + 1) % p])
"""
SENT_FIRST = RING.replace("return comm.sendrecv(chunk, (me + 1) % p, (me - 1) % p)", """
        comm.send(chunk, (me + 1) % p)
        return comm.recv((me - 1) % p)""")  # fmt: skip
BOSS = """
    if comm.rank:
        comm.send(x, 0)
        x[...] = comm.recv(0)
    for rank in range(1, comm.size) if comm.rank == 0 else ():
        x += comm.recv(rank)
    for rank in range(1, comm.size) if comm.rank == 0 else ():
        comm.send(x, rank)
    return x
"""
MOVED = "return w - lr * m_hat / (np.sqrt(v_hat) + eps), m, v"
REMEMBERS = "\n    before[len(x)] = before.get(len(x), 0) + 1\n    x[:1] += before[len(x)] - 1"

SIGNATURES = (
    "def adam_step(w, m, v, t, gradient, lr, beta1, beta2, eps):\n    ",
    "import numpy as np\nbefore = {}\ndef ring_all_reduce(comm, x):\n    ",
)


@pytest.fixture
def small(tmp_path, monkeypatch):
    """An empty clone, in which both trainings are small."""
    monkeypatch.setattr(result, "PARTS", tuple(map(lambda part, s: replace(part, settings=s), PARTS, (LETTERS, TEXT))))
    return tmp_path


def work(root: Path, part: int, body: str) -> None:
    """The reader's notebook: with this body of the function of a part."""
    chapter, name = (("02_minibatch_sgd", "adam_step"), ("04_messages_and_collectives", "ring_all_reduce"))[part - 1]
    cell = small_course.cell("code", name, SIGNATURES[part - 1] + body, solution=True, grade=False)
    small_course.write(root / f"work/{chapter}/{chapter}.ipynb", small_course.notebook([cell], "1"))


REFUSED = {
    "not written": (1, "raise NotImplementedError", ["adam_step is not written yet"]),
    "other means": (1, ADAM + "    return w - lr * m_hat / (np.sqrt(v_hat) + eps), m_hat, v_hat",
                    ["m after adam_step(w=", "expected", "got", "The corrected mean was returned"]),
    "not Adam": (1, ADAM + "    return w - lr * gradient, m, v", ["w after adam_step(w=", "expected"]),
    "float16": (1, ADAM + "    w = w - lr * m_hat / (np.sqrt(v_hat) + eps)\n    return w.astype('f2'), m, v",
                ["w after adam_step", "expected"]),
    "no array": (1, ADAM + "    " + MOVED.replace("m, v", "m.tolist(), v.tolist()"),
                 ["passes its check, but fails when it is called as in training", "its m is not that of Adam"]),
    "own counter": (1, "adam_step.t = t = getattr(adam_step, 't', 0) + 1" + ADAM + "    " + MOVED, ["expected"]),
    "in place": (1, "m *= beta1" + ADAM.replace("beta1 * m +", "m +") + "    " + MOVED, ["changed its argument m"]),
    "no convolution": (1, ADAM + "    " + MOVED.replace("np.sqrt(v_hat)", "np.array([float(a) ** 0.5 for a in v_hat])"),
                       ["passes its check, but fails when it is called as in training: TypeError"]),
    "endless rule": (1, "while True: pass", ["did not finish within 0.5 s"]),
    "no sum": (2, "return x", ["ring_all_reduce(comm, x) on rank 0 of 4", "nothing was added"]),
    "a chunk": (2, RING + "    return chunks[0]", ["expected an array of shape (24,), got shape (6,)"]),
    "float32": (2, RING.replace("sendrecv(chunk", "sendrecv(chunk.astype('f4')") + "    return x", ["float32"]),
    "the library": (2, "comm.all_reduce(x)\n    return x", ["called comm.all_reduce"]),
    "a boss": (2, BOSS, ["rank 0 sent to ranks 1, 2 and 3", "Everything goes through rank 0"]),
    "sends first": (2, SENT_FIRST + "    return x", ["deadlock: ranks 0, 1 and 2 wait for messages"]),
    "endless": (2, "while True: pass", ["did not finish within 0.5 s"]),
    "remembers": (2, RING + REMEMBERS + "\n    return x", ["in call 2 on 2 processes", "it does not return the sum"]),
}  # fmt: skip


@pytest.mark.timeout(300)
@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_function_is_refused_in_a_sentence(case, small, capsys, monkeypatch):
    part, body, sentences = REFUSED[case]
    if case.startswith("endless"):
        monkeypatch.setattr(trial, "CALL_SECONDS", 0.5)
    work(small, part, body)
    assert result.run([str(part), "--steps", "1"], small) == 2
    said = capsys.readouterr().err
    assert all(sentence in said for sentence in sentences), said
    assert said.endswith("With `--by library` minidl's own function trains instead.\n")
    if "passes its check" not in said and "not written" not in said:
        assert f"`python3 -m course check 0{2 * part} {PARTS[part - 1].function}` says more." in said
    assert "Traceback" not in said
    assert not (small / "runs").exists()


def test_without_a_notebook_it_is_said_how_to_begin(small, capsys):
    assert result.run(["1"], small) == 2
    said = capsys.readouterr().err
    assert "There is no work/02_minibatch_sgd/02_minibatch_sgd.ipynb yet: `python3 -m course start 02` makes it" in said
    assert "With `--by library` minidl's own function trains instead." in said


def test_the_library_trains_when_it_is_asked_to(small, capsys):
    assert result.run(["1", "--by", "library", "--steps", "2"], small) == 0
    said = capsys.readouterr().out
    assert "trained by the library's own function" in said
    assert "your adam_step" not in said
    stored = json.loads((small / "runs/part_1/history.json").read_text())
    assert stored["settings"]["steps"] == 2


@pytest.mark.timeout(300)
def test_the_readers_function_trains_and_no_run_is_overwritten(small, capsys):
    (small / "runs/part_1").mkdir(parents=True)
    work(small, 1, "print('called')" + ADAM + "    " + MOVED)
    assert result.run(["1", "--steps", "1"], small) == 0
    said = capsys.readouterr().out
    assert "trained by adam_step of work/02_minibatch_sgd" in said
    assert "your adam_step" in said
    assert "called" not in said  # what a function prints in thousands of calls hides the rest
    stored = json.loads((small / "runs/part_1-2/history.json").read_text())
    assert stored["answer"].startswith("adam_step of work")
    assert [name for name, *_ in stored["function"]][:2] == ["calls", "time of a call (median)"]
    assert {path.name for path in (small / "runs/part_1-2").iterdir()} == {"history.json", "letters.png", "loss.png"}


@pytest.mark.timeout(300)
def test_a_ring_trains_the_gpt_and_its_traffic_is_printed(small, capsys, monkeypatch):
    monkeypatch.setattr(python_gpt, "written", lambda model: "def f(x):\n    $x$")
    monkeypatch.setattr(result, "PARTS", (PARTS[0], replace(result.PARTS[1], floor=None)))
    work(small, 2, RING + "    return x")
    assert result.run(["2", "--steps", "2"], small) == 0
    said = capsys.readouterr().out
    assert all(words in said for words in ("bytes of a node in a call", "rounds", "share of the whole time"))
    files = {path.name for path in (small / "runs/part_2").iterdir()}
    assert files == {"history.json", "loss.png", "text.png", "text.txt"}


def test_a_notebook_that_is_named_may_be_anywhere_and_must_be_one(small, capsys):
    (small / "notes.ipynb").write_text("{")
    assert result.run(["1", "--by", str(small / "notes.ipynb")], small) == 2
    assert "notes.ipynb" in capsys.readouterr().err


def test_a_failure_in_training_is_said_in_a_sentence(small, capsys, monkeypatch):
    def failing(*_: Any) -> Any:
        raise cluster.Deadlock("deadlock: ranks 0 and 1 wait\nrank 0 waited")

    monkeypatch.setattr(result, "PARTS", (replace(result.PARTS[0], train=failing),))
    assert result.run(["1", "--by", "library"], small) == 2
    assert capsys.readouterr().err == "The training failed. deadlock: ranks 0 and 1 wait.\n"


@pytest.mark.parametrize(("part", "guessing"), [(1, np.log(26)), (2, 3.1)], ids=["letters", "text"])
def test_the_recorded_history_is_of_a_network_that_learned(part, guessing):
    """guessing: the loss of equal chances for all letters; of a predictor that knows the frequencies of characters."""
    recorded = history.recorded(part)
    assert recorded.part == part
    assert recorded.settings.keys() == vars(PARTS[part - 1].settings).keys()
    assert recorded.last["step"] == recorded.settings["steps"]
    assert recorded.last["test_loss"] < 0.8 * guessing
    assert recorded.machine["cores"]
