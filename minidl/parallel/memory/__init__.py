"""What a node holds while it trains, by component and layer.

live         the memory of each rank of a run, from the arrays that are alive
reached      which these are, and what they are for
predicted    the memory of each rank from shapes alone, before anything is allocated
steps        what each stage of a model keeps for backward, counted without contents
alone        the communicator of a rank whose shapes are computed without the other ranks
node_memory  the record: bytes by component and layer

MemoryPlan is what a strategy of one's own returns from `memory_plan`, so that its memory can be predicted.
"""

from minidl.parallel.memory.live import live
from minidl.parallel.memory.node_memory import COMPONENTS, NodeMemory, Part
from minidl.parallel.memory.predicted import predicted
from minidl.parallel.memory_plan import MemoryPlan, MemoryUnknown

__all__ = ["COMPONENTS", "MemoryPlan", "MemoryUnknown", "NodeMemory", "Part", "live", "predicted"]
