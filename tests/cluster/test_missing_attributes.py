"""What hands type that know torch.distributed or mpi4py: the answer says what to type."""

import re
from typing import Any

import numpy as np
import pytest

from minidl import Tensor, cluster, nn
from minidl.cluster.missing_attributes import INSTEAD, OF_MODULE
from tests.together import Mistake, assert_refused

pytestmark = pytest.mark.timeout(60)


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
        (lambda: comm.all_gather(outs, x), TypeError, "all_gather takes x by position, got 2 arguments: results are"),
        (lambda: comm.all_reduce(x, "sum", "auto", True), TypeError, "takes x, op, algorithm by position"),
        (lambda: comm.recv(x, 0), TypeError, r"src must be a rank, .* got an array \(ndarray\): recv\(src\) returns"),
        (lambda: comm.irecv(np.array([1]), 0), TypeError, "got an array"),
        (lambda: comm.sendrecv(x, 0, p, 0), TypeError, r"got an array \(Parameter\)"),
        (lambda: comm.reduce_scatter(x, outs), TypeError, "op must be 'sum', .* of type list"),
        (lambda: comm.all_reduce(x, x), TypeError, "op must be 'sum', .* of type ndarray"),
        (lambda: comm.all_reduce(x, "sum", [0, 1]), TypeError, "algorithm must be 'auto', .* of type list"),
        (lambda: comm.split([0, 1]), TypeError, r"not a list: .* type comm\.split\(0 if comm\.rank in ranks"),
        (lambda: comm.recv(source=0), TypeError, "recv has no option 'source': it is called src"),
        (lambda: comm.send(x, dest=1), TypeError, "it is called dst"),
        (lambda: comm.broadcast(x, root=0), TypeError, "it is called src where that rank sends"),
        (lambda: comm.all_reduce(x, group=None), TypeError, r"all_reduce has no option 'group': .*comm\.split"),
        (lambda: comm.gather(x, root_rank=0), TypeError, "its arguments are async_op, dst, label, x"),
    ]


def test_a_habit_from_other_libraries_is_answered_with_what_to_type() -> None:
    def program(comm: cluster.Communicator) -> None:
        assert_refused(mistakes(comm))
        assert "all_reduce" in dir(comm)
        assert not INSTEAD.keys() & dir(comm)

    cluster.launch(program, nodes=2, on="simulation", deadline=50)


def test_hints_are_about_names_that_are_missing_and_say_names_that_are_there() -> None:
    for kind, hints in ((cluster.Communicator, INSTEAD), (cluster, OF_MODULE)):
        for name, hint in hints.items():
            assert not hasattr(kind, name)
            for own in re.findall(r"comm\.(\w+)", hint):
                assert own in {"rank", "size", "last_source"} or callable(getattr(cluster.Communicator, own)), hint
