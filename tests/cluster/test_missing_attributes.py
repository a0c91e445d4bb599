"""What hands type that know torch.distributed or mpi4py: the answer says what to type."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minidl import Tensor, cluster, nn
from minidl.cluster.missing_attributes import INSTEAD, OF_MODULE
from tests.together import Mistake, assert_refused

pytestmark = pytest.mark.timeout(300)


def mistakes(comm: Any) -> list[Mistake]:
    x = np.full(3, 0.7)
    outs, p = [np.zeros(3)] * comm.size, nn.Parameter(x)
    a_tensor = [
        (call, TypeError, "takes an array, not a Parameter: pass its array, p.data")
        for call in (
            *(lambda name=name: getattr(comm, name)(p) for name in ("broadcast", "reduce", "gather", "all_reduce")),
            *(lambda name=name: getattr(comm, name)(p) for name in ("all_gather", "reduce_scatter")),
            *(lambda name=name: getattr(comm, name)(p, 0) for name in ("send", "isend")),
            lambda: comm.recv(0, out=p),
            lambda: comm.sendrecv(x, 0, 0, out=p),
            lambda: comm.irecv(0, out=p),
            lambda: comm.all_to_all([x, p]),
        )
    ]
    return [
        *a_tensor,
        (lambda: comm.broadcast(Tensor(x)), TypeError, "not a Tensor"),
        (lambda: comm.all_reduce([[0.3, 0.7], [0.1]]), TypeError, "not list: make it an array"),
        # names
        (lambda: comm.Get_rank(), AttributeError, r"type comm\.rank"),
        (lambda: comm.Allreduce(x, x), AttributeError, r"type comm\.all_reduce\(\.\.\.\)"),
        (lambda: comm.new_group([0]), AttributeError, r"comm\.split\(color\)"),
        (lambda: cluster.ReduceOp, AttributeError, "type op='sum'"),
        (lambda: cluster.ANY_SOURCE, AttributeError, r"type cluster\.ANY"),
        (lambda: cluster.all_reduce(x), AttributeError, r"comm\.all_reduce"),
        # order and names of arguments
        (lambda: comm.recv(x, 0), TypeError, r"src must be a rank, .* got an array \(ndarray\): recv\(src\) returns"),
        (lambda: comm.irecv(np.array([1]), 0), TypeError, "got an array"),
        (lambda: comm.sendrecv(x, 0, p, 0), TypeError, r"got an array \(Parameter\)"),
        (lambda: comm.reduce_scatter(x, outs), TypeError, "op must be 'sum', .* of type list"),
        (lambda: comm.all_reduce(x, x), TypeError, "op must be 'sum', .* of type ndarray"),
        (lambda: comm.all_reduce(x, "sum", [0, 1]), TypeError, "algorithm must be 'auto', .* of type list"),
        (lambda: comm.split([0, 1]), TypeError, r"not a list: .* type comm\.split\(0 if comm\.rank in ranks"),
        (lambda: comm.all_reduce(x, group=None), TypeError, r"all_reduce has no option 'group': .*comm\.split"),
    ]


def test_a_habit_from_other_libraries_is_answered_with_what_to_type() -> None:
    def program(comm: cluster.Communicator) -> None:
        assert_refused(mistakes(comm))
        assert "all_reduce" in dir(comm)
        assert not INSTEAD.keys() & dir(comm)

    cluster.launch(program, nodes=2, on="simulation", deadline=50)


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        (lambda comm: comm.all_gather([1], 2), "all_gather takes x by position, got 2 arguments: results are"),
        (
            lambda comm: comm.all_reduce(1.0, "sum", "auto", True),
            "all_reduce takes x, op, algorithm by position, got 4",
        ),
        (
            lambda comm: comm.all_reduce(1.0, "sum", "auto", True, label="a"),
            "takes x, op, algorithm by position, got 4",
        ),
        (lambda comm: comm.barrier(True), "barrier takes nothing by position, got 1 arguments"),
        (lambda comm: comm.recv(source=0), "recv has no option 'source': it is called src"),
        (lambda comm: comm.send(1, dest=1), "send has no option 'dest': it is called dst"),
        (lambda comm: comm.broadcast(1, root=0), "it is called src where that rank sends"),
        (lambda comm: comm.gather(1, root_rank=0), "its arguments are async_op, dst, label, x"),
    ],
)
def test_the_report_of_a_rank_explains_arguments_that_a_method_does_not_take(
    program: Callable[[Any], Any], sentence: str
) -> None:
    with pytest.raises(cluster.RankFailed, match=re.escape(sentence)) as caught:
        cluster.launch(program, nodes=1, on="simulation")
    assert isinstance(caught.value.cause, TypeError)
    assert sentence in str(caught.value.cause)


def test_a_type_error_of_the_program_itself_stays_as_it_is() -> None:
    def program(comm: Any) -> None:
        (lambda x: x)(source=0)  # type: ignore[call-arg, misc]

    with pytest.raises(cluster.RankFailed, match=r"<lambda>\(\) got an unexpected keyword argument 'source'"):
        cluster.launch(program, nodes=1, on="simulation")


def test_hints_are_about_names_that_are_missing_and_say_names_that_are_there() -> None:
    for kind, hints in ((cluster.Communicator, INSTEAD), (cluster, OF_MODULE)):
        for name, hint in hints.items():
            assert not hasattr(kind, name)
            for own in re.findall(r"comm\.(\w+)", hint):
                assert own in {"rank", "size", "last_source"} or callable(getattr(cluster.Communicator, own)), hint
