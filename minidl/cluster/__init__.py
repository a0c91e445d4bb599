"""Nodes that exchange messages: launch a program on several of them, and see what each did when.

>>> from minidl import cluster
>>> def program(comm):
...     return comm.all_reduce(comm.rank)
>>> run = cluster.launch(program, nodes=4)
>>> run.results
[6, 6, 6, 6]

`run.seconds` is the time that it took, `run.trace` the record of it. The same program runs with `on="simulation"` (a
virtual clock, any `network=`) and with `on="mpi"`.

    launch.py             runs a program on an engine; what one of several launching processes does for all
    run.py                the result of a launch
    faults.py             planned faults: ranks that die, stop or slow down, messages that are lost or corrupted
    comm.py               the communicator: messages, collectives, groups, work and time, background work
    group.py              the ranks of a communicator, and the tags of its messages
    call_log.py           the collective calls of a group: numbered, posted, run
    mesh.py               the ranks of a communicator as a grid
    work.py               a message or collective in progress; computation that ends when a message arrives
    operands.py           validates the argument of a reduction
    algorithm.py          `algorithm=` of an all-reduce: a name, or a function of one's own
    channel.py            sends, receives and records messages, for point-to-point calls and collectives
    rank.py               the state of a rank
    device.py             the memory in which a rank computes, with its host's behind a link
    in_flight.py          arrays that an operation in progress uses
    phantom.py            an array without contents
    call_site.py          the line of the program that makes a call
    missing_attributes.py hints for names and options of torch.distributed and mpi4py
    calibrate.py          fits a network to this machine

    collectives           how an all-reduce works, and every other collective
    cost                  what they cost: formulas, networks
    trace                 what happened: events, ledger, critical path, timeline
    diagnosis             what is wrong with a program: errors, fingerprints of collective calls
    engines               where ranks run: processes, simulation, MPI
"""

from typing import TYPE_CHECKING

from minidl.cluster import cost
from minidl.cluster.calibrate import calibrate, plot_fit
from minidl.cluster.comm import Communicator
from minidl.cluster.cost.memory import Memory
from minidl.cluster.cost.network import Network
from minidl.cluster.device import Device, DeviceError
from minidl.cluster.diagnosis.errors import ClusterError, CollectiveMismatch, CommTimeout, Deadlock, RankFailed
from minidl.cluster.faults import FaultPlan
from minidl.cluster.group import ANY
from minidl.cluster.launch import is_first, launch, once
from minidl.cluster.mesh import Mesh
from minidl.cluster.missing_attributes import OF_MODULE
from minidl.cluster.phantom import Phantom
from minidl.cluster.rank import DeviceUse
from minidl.cluster.run import Run
from minidl.cluster.trace.recording import Shares, Traffic
from minidl.cluster.trace.trace import Event, Trace, play_traces, plot_traces
from minidl.cluster.work import Work
from minidl.from_pytorch import explain_missing_names, imports_of

if TYPE_CHECKING:
    from minidl.cluster.engines.mpi import MPI
    from minidl.cluster.engines.processes import Processes
    from minidl.cluster.engines.simulation import Node, Simulation

__all__ = [
    "ANY",
    "MPI",
    "ClusterError",
    "CollectiveMismatch",
    "CommTimeout",
    "Communicator",
    "Deadlock",
    "Device",
    "DeviceError",
    "DeviceUse",
    "Event",
    "FaultPlan",
    "Memory",
    "Mesh",
    "Network",
    "Node",
    "Phantom",
    "Processes",
    "RankFailed",
    "Run",
    "Shares",
    "Simulation",
    "Trace",
    "Traffic",
    "Work",
    "calibrate",
    "cost",
    "is_first",
    "launch",
    "once",
    "play_traces",
    "plot_fit",
    "plot_traces",
]

explain_missing_names(__name__, __all__, OF_MODULE, on_demand=imports_of(__file__))
