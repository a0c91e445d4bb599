"""Which way to divide the training of a model over a cluster, in closed form: nothing is run or allocated.

machine         the cluster: accelerators, their memory, the links within a node and between nodes
arrangement     one way to divide the work: extents of the axes, micro-batches, schedule, recomputation
costs           what the planner asks of a model
transformer     a GPT from its sizes: parameters, flops, what its blocks cost and keep
counted_model   any other model of stages, counted without contents
step_time       the seconds of a step by what takes them, and the traffic of each axis
memory          the bytes of the fullest rank by component
search          all arrangements of a model on a machine, the fastest first
why             what decides, in three sentences
published       published step times, and what is assumed of each
fit             the two constants of the machine, from five of these rows
"""

from minidl.parallel.planner.arrangement import Arrangement
from minidl.parallel.planner.counted_model import CountedModel
from minidl.parallel.planner.machine import MACHINES, Machine
from minidl.parallel.planner.memory import memory
from minidl.parallel.planner.search import Planned, search
from minidl.parallel.planner.step_time import StepTime, step_time, traffic, utilisation
from minidl.parallel.planner.transformer import Transformer
from minidl.parallel.planner.why import why

__all__ = [
    "MACHINES",
    "Arrangement",
    "CountedModel",
    "Machine",
    "Planned",
    "StepTime",
    "Transformer",
    "memory",
    "search",
    "step_time",
    "traffic",
    "utilisation",
    "why",
]
