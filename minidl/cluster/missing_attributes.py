"""Hints for names and options of torch.distributed and mpi4py that minidl does not have: what to type instead."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping

from minidl.from_pytorch import Missing

OTHERS = {  # the other libraries' names of these methods, where they differ
    "send": "Send ssend Ssend",
    "recv": "Recv",
    "sendrecv": "Sendrecv",
    "isend": "Isend issend Issend",
    "irecv": "Irecv",
    "broadcast": "bcast Bcast broadcast_object_list",
    "reduce": "Reduce",
    "gather": "Gather Gatherv gather_object",
    "scatter": "Scatter Scatterv scatter_object_list",
    "all_reduce": "allreduce Allreduce",
    "all_gather": "allgather Allgather Allgatherv all_gather_into_tensor all_gather_object",
    "reduce_scatter": "Reduce_scatter Reduce_scatter_block reduce_scatter_tensor",
    "all_to_all": "alltoall Alltoall Alltoallv all_to_all_single",
    "barrier": "Barrier monitored_barrier",
    "split": "Split",
    "mesh": "Create_cart init_device_mesh",
}

INSTEAD = {  # attributes of a communicator
    **{other: f"type comm.{own}(...)" for own, others in OTHERS.items() for other in others.split()},
    "Ibcast": "type comm.broadcast(x, async_op=True)",
    "Iallreduce": "type comm.all_reduce(x, async_op=True)",
    "Ibarrier": "type comm.barrier(async_op=True)",
    **dict.fromkeys(("Get_rank", "get_rank"), "type comm.rank"),
    **dict.fromkeys(("Get_size", "get_size", "get_world_size", "world_size"), "type comm.size"),
    **dict.fromkeys(
        ("Create", "new_group", "new_subgroups"),
        "all ranks call comm.split(color), which returns the communicator of those with the same color",
    ),
    "Dup": "type comm.split(0)",
    **dict.fromkeys(("scan", "Scan", "exscan", "Exscan"), "comm.all_gather(x) returns every rank's x, for np.cumsum"),
    **dict.fromkeys(
        ("probe", "Probe"), "comm.recv(cluster.ANY) receives from any rank, comm.last_source is the sender"
    ),
    **dict.fromkeys(("iprobe", "Iprobe"), "comm.irecv(src).is_completed() tells whether the message has arrived"),
    "batch_isend_irecv": "comm.isend and comm.irecv return at once, and wait() on what they return",
    "Abort": "raise an error, which ends the run",
    **dict.fromkeys(("destroy_process_group", "Free"), "leave it out, a run ends with its program"),
}

OPTIONS = {
    "source": "it is called src",
    "dest": "it is called dst",
    "root": "it is called src where that rank sends, dst where it receives",
    "group": "call the method of the group's communicator, which comm.split(color) returns",
    "timeout": "cluster.launch(program, timeout=60.0) sets it, in seconds",
    "status": "leave it out, comm.last_source is the sender",
    **dict.fromkeys(("buf", "input", "obj", "object", "sendbuf", "sendobj", "tensor"), "it is called x"),
    **dict.fromkeys(("output", "recvbuf", "tensor_list", "gather_list"), "leave it out, the result is returned"),
    "scatter_list": "it is called x",
}

OF_MODULE = {  # names of torch.distributed and mpi4py.MPI
    **INSTEAD,
    **{name: f"a method of the communicator that a program gets, comm.{name}" for name in OTHERS if name != "mesh"},
    **dict.fromkeys(("ReduceOp", "Op"), "type op='sum', 'mean', 'max', 'min' or 'prod'"),
    **{name: f"type op={name.lower()!r}" for name in ("SUM", "MAX", "MIN", "PROD")},
    "AVG": "type op='mean'",
    "ANY_SOURCE": "type cluster.ANY",
    "ANY_TAG": "give the tag, or leave it out on both sides",
    **dict.fromkeys(
        ("COMM_WORLD", "Comm", "Init", "ProcessGroup", "init_process_group", "spawn"),
        "cluster.launch(program, nodes=4) calls program(comm) on each rank",
    ),
}


UNKNOWN = re.compile(r"Communicator\.(\w+)\(\) got an unexpected keyword argument '(\w+)'")
TOO_MANY = re.compile(r"Communicator\.(\w+)\(\) takes .* positional arguments?.* but (\d+) (?:was|were|positional) ")


def add_hints(kind: type) -> None:
    """Set a hint for each missing attribute of the communicator."""
    for name, hint in INSTEAD.items():
        setattr(kind, name, Missing(name, hint))


def explain(error: BaseException, kind: type) -> None:
    """Add what to type instead to a TypeError for arguments that a method of the communicator does not take.

    Python raises it before the method begins, so the hint is added when a rank reports the error: checking the
    arguments of every call took up to 0.6 microseconds.
    """
    text = str(error) if type(error) is TypeError else ""
    if match := UNKNOWN.match(text):
        name, option = match.groups()
        known = sorted(parameter for parameter in _parameters(kind, name) if parameter != "self")
        hint = OPTIONS.get(option) or f"its arguments are {', '.join(known)}"
        error.args = (f"{name} has no option {option!r}: {hint}",)
    elif match := TOO_MANY.match(text):
        name, given = match[1], int(match[2]) - 1
        parameters = _parameters(kind, name).values()
        by_position = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
        error.args = (
            f"{name} takes {', '.join(by_position[1:]) or 'nothing'} by position, got {given} arguments: "
            "results are returned, options are given by name",
        )


def _parameters(kind: type, method: str) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(getattr(kind, method)).parameters
