"""Wrong programs are told so: ranks that do not make the same collectives, and right programs that look as if."""

import contextlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minidl import cluster
from minidl.cluster.call_site import ANYWHERE, Site, call_site
from minidl.cluster.diagnosis.call_order import HISTORY, CallOrder, Reordering
from minidl.cluster.diagnosis.fingerprints import Fingerprint, FingerprintTable
from tests.cluster.blocked import all_reports_awaited

pytestmark = pytest.mark.timeout(300)

Program = Callable[[cluster.Communicator], Any]
ENGINES = ["processes", "simulation"]


def line_of(program: Program, offset: int) -> str:
    return f"{__file__}:{program.__code__.co_firstlineno + offset}"


def mismatch_of(program: Program, on: str, nodes: int = 4) -> cluster.CollectiveMismatch:
    with pytest.raises(cluster.CollectiveMismatch) as caught, all_reports_awaited():
        cluster.launch(program, nodes=nodes, on=on)
    raised = [text.splitlines() for text in caught.value.tracebacks.values()]
    assert raised
    for lines in raised:  # on every rank that had not returned
        assert any(line.startswith("minidl.cluster.diagnosis.errors.CollectiveMismatch: ") for line in lines)
    return caught.value


# The matrix


def odd_call(comm: cluster.Communicator, what: str) -> None:
    """The same collective on all ranks, but for one argument of rank 2."""
    is_odd = comm.rank == 2
    if what == "shape":
        comm.all_reduce(np.ones(4 if is_odd else 8))
    if what == "type":
        comm.all_reduce(np.ones(4, np.int32 if is_odd else np.float32))
    if what == "op":
        comm.all_reduce(np.ones(4), op="max" if is_odd else "sum")
    if what == "root":
        comm.broadcast(np.ones(4), src=1 if is_odd else 0)
    if what == "algorithm":
        comm.all_reduce(np.ones(4), algorithm="tree" if is_odd else "ring")
    if what == "options":
        comm.all_reduce(np.ones(4), algorithm="pipelined_chain", segments=2 if is_odd else 5)
    if what == "label":
        comm.all_reduce(np.ones(4), label="weights" if is_odd else "loss")
    if what == "operation":
        comm.broadcast(np.ones(4)) if is_odd else comm.all_reduce(np.ones(4))
    if what == "own algorithm":
        comm.all_reduce(np.ones(4), algorithm=mine if is_odd else "ordered")


def mine(comm: cluster.Communicator, x: np.ndarray, op: str) -> None: ...


DIFFERENT = {
    "shape": (4, "shape=(8,)", "shape=(4,)"),
    "type": (6, "dtype=<f4", "dtype=<i4"),
    "op": (8, "op=sum", "op=max"),
    "root": (10, "root=0", "root=1"),
    "algorithm": (12, "algorithm=ring", "algorithm=tree"),
    "options": (14, "pipelined_chain(segments=5)", "pipelined_chain(segments=2)"),
    "label": (16, "label=loss", "label=weights"),
    "operation": (18, "all_reduce(op=sum", "broadcast(root=0)"),
    "own algorithm": (20, "algorithm=ordered", "algorithm=mine at test_mismatch.py:"),
}


@pytest.mark.parametrize(("on", "what"), [*(("simulation", what) for what in DIFFERENT), ("processes", "op")])
def test_a_rank_that_calls_the_same_collective_otherwise_is_named_with_both_calls_and_lines(on: str, what: str) -> None:
    text = str(mismatch_of(lambda comm: odd_call(comm, what), on))
    first, second, third, *_ = text.splitlines()
    line, usual, odd = DIFFERENT[what]
    assert re.fullmatch(r"(rank 2 and .*|.* and rank 2) make different collective calls", first)
    lines = {line.split(":")[0].strip(): line for line in (second, third)}
    assert odd in lines.pop("rank 2")
    assert usual in lines.popitem()[1]
    assert f"{line_of(odd_call, line)}, called at " in second
    assert f"{line_of(odd_call, line)}, called at " in third


# The order


def swapped(comm: cluster.Communicator) -> None:
    x, y = np.ones(4), np.zeros(4)
    for what in "yx" if comm.rank == 1 else "xy":
        if what == "x":
            comm.all_reduce(x)
        else:
            comm.all_reduce(y)


@pytest.mark.parametrize("on", ENGINES)
def test_two_equal_collectives_in_another_order_are_found_by_their_lines(on: str) -> None:
    text = str(mismatch_of(swapped, on))
    assert re.match(
        r"ranks \d and \d make their collective calls in a different order, or one leaves out a call\n", text
    )
    call = r"all_reduce\(op=sum, algorithm=auto, dtype=<f8, shape=\(4,\)\)"
    for number, offset in ((1, 6), (2, 4)):
        assert re.search(rf"rank 1: collective {number} of the group is {call} at {line_of(swapped, offset)}\n", text)
    assert "label='loss'" in text


@pytest.mark.parametrize("on", ENGINES)
def test_a_collective_that_one_rank_leaves_out_is_found_by_the_lines_of_the_next(on: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        x = np.ones(4)
        comm.all_reduce(x)
        if comm.rank != 3:
            comm.all_reduce(x)
        comm.all_reduce(x)
        comm.all_reduce(x)

    text = str(mismatch_of(program, on))
    assert line_of(program, 4) in text
    assert line_of(program, 5) in text


def test_a_collective_that_one_rank_leaves_out_where_nobody_waits_for_it_is_found_at_the_end() -> None:
    def program(comm: cluster.Communicator) -> None:
        half = comm.split(comm.rank // 2)
        assert half is not None
        if comm.rank != 3:
            half.broadcast(1)

    with pytest.raises(cluster.CollectiveMismatch) as caught:
        cluster.launch(program)
    assert str(caught.value) == (
        "rank 3 returned without a collective call that rank 2 made\n"
        f"  rank 2: collective 1 of the group is broadcast(root=0) at {line_of(program, 4)}"
    )
    assert caught.value.trace is not None


@pytest.mark.parametrize("on", ENGINES)
def test_an_exchange_on_one_line_is_found_with_labels_and_not_without(on: str) -> None:
    def program(comm: cluster.Communicator, has_labels: bool) -> None:
        for name in ("bias", "weight") if comm.rank == 1 else ("weight", "bias"):
            comm.all_reduce(np.ones(4), label=name if has_labels else None)

    text = str(mismatch_of(lambda comm: program(comm, True), on))
    assert "label=weight" in text
    assert "label=bias" in text
    cluster.launch(program, args=(False,), on=on)


# Right programs


def the_root_takes_another_branch(comm: cluster.Communicator) -> float:
    total = 0.0
    for step in range(3):
        if comm.rank == 0:
            total += comm.broadcast(float(step))
        else:
            total += comm.broadcast(None)
    return total


def each_has_its_own_function(comm: cluster.Communicator) -> float:
    def even(x: float) -> float:
        x = comm.all_reduce(x)
        return float(comm.all_reduce(x, op="max"))

    def odd(x: float) -> float:
        x = comm.all_reduce(x)
        return float(comm.all_reduce(x, op="max"))

    return sum((odd if comm.rank % 2 else even)(1.0) for _ in range(3))


def groups_do_different_things(comm: cluster.Communicator) -> float:
    half = comm.split(comm.rank % 2)
    assert half is not None
    x = np.ones(4)
    if comm.rank % 2:
        half.all_reduce(x)
        half.broadcast(x)
    else:
        half.broadcast(x)
        half.all_reduce(x)
        half.barrier()
    return float(comm.all_reduce(x)[0])


def loops_that_the_data_ends(comm: cluster.Communicator) -> int:
    error, steps = float(10 - comm.rank), 0
    while comm.all_reduce(error, op="max") > 1:
        error /= 2
        steps += 1
        if steps % 2:
            comm.all_reduce(error, op="max")
    comm.barrier()
    return steps


def the_leader_rotates(comm: cluster.Communicator) -> float:
    total = 0.0
    for turn in range(3 * comm.size):
        if comm.rank == turn % comm.size:
            total += comm.all_reduce(1.0)
        else:
            total += comm.all_reduce(0.0)
    return total


def the_leader_rotates_and_all_meet_in_between(comm: cluster.Communicator) -> float:
    total = 0.0
    for turn in range(2 * comm.size):
        items = comm.all_gather(1) if comm.rank == turn % comm.size else comm.all_gather(None)
        total += sum(item is not None for item in items)
        comm.all_gather(0)
    return total


def a_retry_in_except(comm: cluster.Communicator) -> float:
    total = 0.0
    for step in range(12):
        try:
            if step % 3 == 0 and step // 3 % comm.size == comm.rank:
                raise FloatingPointError("overflow")
            total += comm.all_reduce(1.0)
        except FloatingPointError:
            total += comm.all_reduce(0.0)
    return total


RIGHT = {
    the_root_takes_another_branch: 3.0,
    each_has_its_own_function: 12.0,
    groups_do_different_things: 8.0,
    loops_that_the_data_ends: 4,
    the_leader_rotates: 12.0,
    the_leader_rotates_and_all_meet_in_between: 8.0,
    a_retry_in_except: 8 * 4.0 + 4 * 3.0,
}


@pytest.mark.parametrize("on", ENGINES)
def test_right_programs_whose_ranks_take_different_branches_pass(on: str) -> None:
    def program(comm: cluster.Communicator) -> list[float]:
        return [right(comm) for right in RIGHT]

    assert cluster.launch(program, on=on).results == [[*RIGHT.values()]] * 4


def test_a_call_in_an_except_handler_has_no_line_and_says_where_it_is() -> None:
    try:
        raise ValueError
    except ValueError:
        site = call_site()
    assert site.key == ANYWHERE
    assert site.place.startswith(f"{__file__}:")
    assert call_site().key != ANYWHERE


@pytest.mark.parametrize("on", ENGINES)
def test_a_rank_300_calls_behind_is_compared_with_what_the_others_called_then(on: str) -> None:
    def program(comm: cluster.Communicator) -> None:
        if comm.rank == 1:
            comm.recv(0)
        works = [
            comm.broadcast(step, async_op=True, label="odd" if (comm.rank, step) == (1, 10) else None)
            for step in range(300)
        ]
        if comm.rank == 0:
            comm.send("all are posted", 1)
        for work in works:
            work.wait()

    text = str(mismatch_of(program, on, 2))
    if on == "simulation":
        assert "label=odd" in text
    else:
        assert "made different collective calls before collective 45 of their group" in text


def test_ranks_that_catch_a_mismatch_and_return_have_its_error_with_both_calls() -> None:
    def program(comm: cluster.Communicator) -> None:
        with contextlib.suppress(cluster.ClusterError):
            comm.all_reduce(np.ones(3 + comm.rank))

    with pytest.raises(cluster.CollectiveMismatch, match=r"rank 0 and rank 1 make different") as caught:
        cluster.launch(program, nodes=2)
    assert "shape=(3,)" in str(caught.value)
    assert "shape=(4,)" in str(caught.value)


def test_the_entries_of_many_groups_and_calls_take_turns_on_the_page() -> None:
    def program(comm: cluster.Communicator) -> int:
        pairs = [comm.split(comm.rank // 2) for _ in range(3)]
        count = 0
        for step in range(HISTORY):
            for pair in pairs:
                assert pair is not None
                count += pair.all_reduce(1, op="sum" if step % 2 else "prod")
        return count

    assert cluster.launch(program).results == [3 * (HISTORY // 2) * (1 + 2)] * 4


# The pieces


def reordering_of(*ranks: str) -> Reordering | None:
    """The first reordering of ranks that make these calls: of each a letter, its fingerprint, and a digit, its line."""
    order = CallOrder()
    for call, made in enumerate(zip(*(rank.split() for rank in ranks), strict=True)):
        assert len({name[0] for name in made}) == 1, "the ranks make the same call"
        lines: dict[Site, int] = {}
        for rank, (_, digit) in enumerate(made):
            line = Site(int(digit), f"line {digit}")
            lines[line] = lines.get(line, 0) | 1 << rank
        if (reordering := order.next(made[0][0], call, lines)) is not None:
            return reordering
    return None


WRONG = {
    "two lines swapped": (["a1 a2", "a2 a1", "a1 a2"], 0),
    "two lines swapped on half of the ranks": (["a1 a2", "a1 a2", "a2 a1", "a2 a1"], 0),
    "two lines swapped, others between them": (["a1 a3 a2", "a2 a3 a1", "a1 a3 a2"], 0),
    "two lines swapped later": (["a1 a2 a1 a2", "a1 a2 a2 a1"], 2),
    "a call skipped": (["a1 a2 a3", "a1 a3 a4"], 1),
    "a call skipped by the other": (["a1 a3 a4", "a1 a2 a3"], 1),
    "a call skipped by one of many": (["a1 a2 a3 a4", "a1 a2 a3 a4", "a1 a3 a4 a5"], 1),
    "a call skipped in a loop of two lines": (["a1 a2 a1 a2 a1 a2", "a1 a2 a2 a1 a2 a1"], 2),
    "a call skipped in a loop of three lines": (["a1 a2 a3 a1 a2 a3 a1 a2", "a1 a2 a3 a2 a3 a1 a2 a3"], 3),
}
TAKING_TURNS = {
    "different fingerprints, as where each rank is the root in turn": ["a1 b2", "a2 b1"],
    "a line for each rank": ["a1 a1", "a2 a2"],
    "other lines for each rank": ["a1 a2", "a3 a4"],
    "another line at the end": ["a1 a1 a2", "a1 a1 a3"],
    "a leader that rotates, between two ranks": ["a1 a2", "a2 a1"],
    "a leader that rotates, among three ranks": ["a1 a2 a2 a1", "a2 a1 a2 a2", "a2 a2 a1 a2"],
    "leader, deputy and follower rotate": ["a1 a2 a3", "a3 a1 a2", "a2 a3 a1"],
    "a retry, between two ranks, now and then": ["a1 a1 a1 a2 a1", "a1 a2 a1 a1 a1"],
    "a retry at two calls in a row": ["a1 a1 a2 a1", "a1 a2 a1 a1"],
    "a retry on one rank after the other": ["a1 a2 a1 a1", "a2 a1 a1 a1", "a1 a1 a1 a1"],
    "others fail later, with a call in step in between": ["a1 a2 a1 a1", "a1 a1 a1 a2", "a1 a1 a1 a2"],
}


def test_ranks_that_make_equal_calls_in_another_order_cross_and_branches_that_take_turns_do_not() -> None:
    for name, (ranks, earlier) in WRONG.items():
        reordering = reordering_of(*ranks)
        assert reordering is not None, name
        assert reordering.earlier == earlier, name
    for name, ranks in TAKING_TURNS.items():
        assert reordering_of(*ranks) is None, name


def test_of_equal_calls_from_ever_new_lines_a_bounded_number_is_remembered() -> None:
    order = CallOrder()
    for call in range(3 * HISTORY):
        order.next("a", call, {Site(2 * call, ""): 1, Site(2 * call + 1, ""): 2})
        order.next("a", call, {Site(call, ""): 3})
    assert len(order._calls["a"]._apart) == len(order._calls["a"]._together) == HISTORY
    for call in range(3 * HISTORY):
        order.next(call, call, {Site(call, ""): 3})
    assert len(order._calls) == HISTORY


def test_a_table_keeps_a_call_until_all_ranks_have_made_it() -> None:
    table = FingerprintTable()
    many, site = 3 * HISTORY, Site(1, "here")
    for rank in (0, 1):
        for call in range(many):
            table.post(rank, 0, (0, 1, 2), call, Fingerprint("barrier"), site)
    (group,) = table._groups.values()
    assert len(group._calls) == many
    table.post(2, 0, (0, 1, 2), 0, Fingerprint("barrier"), site)
    with pytest.raises(cluster.CollectiveMismatch, match=r"rank 2: split\(\) at there"):
        table.post(2, 0, (0, 1, 2), 1, Fingerprint("split"), Site(2, "there"))
    for call in range(1, many):
        table.post(2, 0, (0, 1, 2), call, Fingerprint("barrier"), site)
    assert group._calls == {}


def test_a_site_is_the_line_and_the_calls_that_led_to_it() -> None:
    def inner() -> Site:
        return call_site()

    def outer() -> Site:
        return inner()

    first, again = (outer() for _ in range(2))
    assert first == again
    assert inner() != first
    line = f"{__file__}:{inner.__code__.co_firstlineno + 1}"
    assert first.place == f"{line}, called at {__file__}:{outer.__code__.co_firstlineno + 1}"


def test_a_site_has_the_same_key_in_every_process() -> None:
    def program(comm: cluster.Communicator) -> list[int]:
        return comm.all_gather(call_site().key)

    keys = cluster.launch(program, nodes=2, on=cluster.Processes("spawn")).results[0]
    assert keys[0] == keys[1] != 0


@pytest.mark.parametrize("filename", ["/tmp/ipykernel_815/2947.py", "<ipython-input-3-9f86d0>"])
def test_the_site_in_a_notebook_names_the_function_of_the_cell_and_not_the_kernels_file(filename):
    names = {"call_site": call_site}
    exec(compile("\ndef program():\n    return call_site()\n", filename, "exec"), names)
    assert names["program"]().place.startswith("line 3 of the notebook cell of program")


@pytest.mark.parametrize("on", ENGINES)
def test_a_broadcast_into_an_array_of_another_size_is_a_mismatch_that_names_the_rank_and_both_shapes(on: str) -> None:
    error = mismatch_of(lambda comm: comm.broadcast(np.ones((2, 3) if comm.rank == 2 else (3, 3)), src=1), on)
    assert error.rank == 2
    assert re.search(r"rank 2 passes to broadcast .* rank 1: .*\(2, 3\).*\(3, 3\)", str(error))
