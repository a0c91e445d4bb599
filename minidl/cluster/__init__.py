"""Nodes that talk: launch a program on several of them, and see who computed what and who waited for whom.

>>> from minidl import cluster
>>> def program(comm):
...     return comm.all_reduce(comm.rank)
>>> run = cluster.launch(program, nodes=4)
>>> run.results
[6, 6, 6, 6]

`run.seconds` is the time, `run.trace` the record of it. Read `comm.py` for what a node can do, `collectives.py` for how
an all-reduce works, `engines/` for how real processes carry the messages.
"""

from minidl.cluster.calibrate import calibrate, plot_fit
from minidl.cluster.comm import Communicator
from minidl.cluster.engines.processes import Processes
from minidl.cluster.errors import ClusterError, CollectiveMismatch, CommTimeout, Deadlock, RankFailed
from minidl.cluster.faults import FaultPlan
from minidl.cluster.launch import launch
from minidl.cluster.messages import ANY, Work
from minidl.cluster.network import Network
from minidl.cluster.recorder import Shares, Traffic
from minidl.cluster.run import Run
from minidl.cluster.trace import Event, Trace, plot_traces

__all__ = [
    "ANY",
    "ClusterError",
    "CollectiveMismatch",
    "CommTimeout",
    "Communicator",
    "Deadlock",
    "Event",
    "Network",
    "FaultPlan",
    "Processes",
    "RankFailed",
    "Run",
    "Shares",
    "Trace",
    "Traffic",
    "Work",
    "calibrate",
    "launch",
    "plot_fit",
    "plot_traces",
]
