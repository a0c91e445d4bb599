"""What a node holds while it trains, by component and layer.

node_memory  the record: bytes by component and layer
"""

from minidl.parallel.memory.node_memory import COMPONENTS, NodeMemory, Part

__all__ = ["COMPONENTS", "NodeMemory", "Part"]
