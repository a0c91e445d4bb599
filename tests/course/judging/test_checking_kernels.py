"""A check in a notebook's kernel: what a function needs travels with it, and Ctrl-C ends it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from jupyter_client import BlockingKernelClient, KernelManager

from course.building.execution import connection
from course.judging import Answer, ChapterChecks, DefectiveCheckError, Outcome, Part, Status, exercise, expect, judging
from course.setup.bootstrap import ROOT

pytestmark = pytest.mark.timeout(300)

chapter = ChapterChecks("99_kernels")


@chapter.exercise(points=2, hints=["Add x to itself.", "x + x"])
def double(answer: Answer, part: Part, x: float = 3.0) -> None:
    with part(2, "doubles"):
        expect.number(answer(x), 2 * x, f"double({x:g})")
    if x > 100:
        raise IndexError("of the check")


def outcome_of(function: object, **cases: float) -> Outcome:
    with judging() as outcomes:
        double(function, **cases)
    return outcomes[0]


def test_a_function_is_sent_with_the_values_that_it_uses() -> None:
    factor = np.array(2.0)
    assert outcome_of(lambda x: float(factor * x)).status is Status.CORRECT


def test_a_compiled_function_is_checked() -> None:
    numba = pytest.importorskip("numba")
    assert outcome_of(numba.njit(lambda x: 2 * x)).status is Status.CORRECT


LOCK = threading.Lock()


def uses_a_lock(x: float) -> float:
    with LOCK:
        return 2 * x


uses_a_lock.__module__ = "__main__"  # as in a notebook


def test_a_value_that_cannot_be_sent_is_named() -> None:
    outcome = outcome_of(uses_a_lock)
    assert outcome.status is Status.RAISED
    assert "what it uses as `LOCK`, a lock, cannot be sent there" in outcome.first_fault.message


def test_a_check_without_a_function_says_that_it_got_nothing_and_nothing_of_brackets() -> None:
    with judging() as outcomes:
        double()
    assert outcomes[0].status is Status.RAISED
    assert outcomes[0].first_fault.message == (
        "check.double wants your function, and got nothing: write check.double(double)."
    )


def test_a_check_given_the_result_asks_for_the_function_and_names_what_it_got() -> None:
    for value, kind in (
        (3, "an int"),
        (6.0, "a float"),
        (np.zeros(2), "a numpy.ndarray"),
        (sys.stdout, "an open file"),
    ):
        outcome = outcome_of(value)
        assert outcome.status is Status.RAISED
        assert f"got {kind}: write" in outcome.first_fault.message
        assert "check.double(double), without brackets" in outcome.first_fault.message


def test_the_wrong_number_of_arguments_is_reported() -> None:
    assert "missing 1 required positional argument: 'y'" in outcome_of(lambda x, y: x + y).first_fault.message


def test_a_class_is_called_like_a_function() -> None:
    class Twice:
        def __init__(self, x: float) -> None:
            self.x = x

    assert "got a Twice" in outcome_of(Twice).first_fault.message


def test_hidden_cases_are_marked() -> None:
    assert not outcome_of(lambda x: 6.0).is_hidden
    hidden = outcome_of(lambda x: 6.0, x=4.0)
    assert hidden.is_hidden
    assert hidden.status is Status.WRONG


def test_a_defect_of_a_check_raises_in_tests_and_is_printed_in_class(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DefectiveCheckError, match="the check of double failed: IndexError: of the check"):
        outcome_of(lambda x: 2 * x, x=101.0)
    assert double(lambda x: 2 * x, x=101.0) == 2.0  # what was found before counts
    assert "double (hidden cases): the check itself failed" in capsys.readouterr().out


def test_cases_that_a_check_does_not_have_are_refused() -> None:
    with pytest.raises(TypeError, match=r"check.double has no cases 'size'; it has x"):
        double(lambda x: 2 * x, size=3)


def test_hints_come_step_by_step_and_begin_again(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        chapter.hint("double")
    told = capsys.readouterr().out.splitlines()
    assert told == [
        "Hint 1 of 2; the same call again tells hint 2:", "Add x to itself.", "Hint 2 of 2:", "x + x",
        "Hint 1 of 2; the same call again tells hint 2:", "Add x to itself.",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="no exercise is called 'doubel': there is double"):
        chapter.hint("doubel")


def test_a_result_is_kept_only_of_the_public_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Outcome] = []
    monkeypatch.setattr(exercise.progress_record, "keep", lambda chapter, outcomes: kept.extend(outcomes))
    double(lambda x: 2 * x, x=1.0)
    double(lambda x: 2 * x)
    assert len(kept) == 1


SETUP = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from course.judging import ChapterChecks, expect
chapter = ChapterChecks("99")
@chapter.exercise(points=1, hints=["no"])
def f(answer, part):
    with part(1, "adds one"):
        expect.number(answer(1), 2, "f(1)")
FACTOR = [1]
"""
RAISES = "def f(x):\n    y = FACTOR\n    return y[x]"
LOOPS = "def f(x):\n    while True:\n        pass"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingKernelClient]:
    folder = tmp_path_factory.mktemp("kernel")
    settings = connection(str(folder))["AsyncKernelManager"]
    manager = KernelManager(transport=settings["transport"], ip=settings["ip"])
    manager.start_kernel(cwd=str(folder))
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    client.interrupt = manager.interrupt_kernel
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run(kernel: BlockingKernelClient, source: str) -> tuple[str, str]:
    """What a cell shows, as text, and the name of the exception that it ends with."""
    shown: list[str] = []

    def hook(message: dict) -> None:
        content = message["content"]
        shown.append(content.get("text", "") or content.get("data", {}).get("text/plain", ""))

    reply = kernel.execute_interactive(source, timeout=240, output_hook=hook)
    return "".join(shown), reply["content"].get("ename", "")


def interrupt_until(kernel: BlockingKernelClient, has_ended: threading.Event) -> None:
    """Interrupt the kernel, and again if that was before it has begun."""
    while not has_ended.wait(3.0):
        kernel.interrupt()


def test_in_a_kernel_the_student_s_line_is_named_and_an_interrupt_ends_the_check(kernel: BlockingKernelClient) -> None:
    assert run(kernel, SETUP) == ("", "")
    run(kernel, RAISES)
    shown, _ = run(kernel, "chapter.exercises['f'](f)")
    assert "f raised IndexError: list index out of range" in shown
    assert "It was raised in cell [2], line 3 in f: return y[x]" in shown
    run(kernel, LOOPS)
    has_ended = threading.Event()
    interrupts = threading.Thread(target=interrupt_until, args=(kernel, has_ended))
    interrupts.start()
    shown, error = run(kernel, "chapter.exercises['f'](f)")
    has_ended.set()
    interrupts.join()
    assert error == "KeyboardInterrupt"
    left = "import psutil\n[p.cmdline() for p in psutil.Process().children(recursive=True)][1:]"  # the first is warm
    assert run(kernel, left) == ("[]", "")
    shown, _ = run(kernel, "def f(x): return x + 1\nchapter.exercises['f'](f)")
    assert "f: correct, 1 of 1 points" in shown
