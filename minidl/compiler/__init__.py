"""A compiler: a function's array arithmetic as a graph, passes that make it smaller, and generated code.

    graph = trace(f, *arguments)         `print(graph)` shows it; graph.nodes, graph.launches, graph.nbytes
    graph = fold_constants(graph)        each pass is a function from a graph to an equal graph
    graph = share_subexpressions(graph)
    graph = remove_dead_code(graph)
    graph = fuse_elementwise(graph)
    plan = plan_buffers(graph)           when each result is overwritten or freed; plan.nbytes
    program = Program(graph, plan)       program.source, program(*arrays)
    compile(f)                           all of it, at the first call

Read `graph.py`, `trace.py`, `passes.py`, `generate.py`, in this order.
"""

from minidl.compiler.generate import Program as Program
from minidl.compiler.generate import compile as compile
from minidl.compiler.graph import Graph as Graph
from minidl.compiler.passes import fold_constants as fold_constants
from minidl.compiler.passes import fuse_elementwise as fuse_elementwise
from minidl.compiler.passes import optimized as optimized
from minidl.compiler.passes import plan_buffers as plan_buffers
from minidl.compiler.passes import remove_dead_code as remove_dead_code
from minidl.compiler.passes import share_subexpressions as share_subexpressions
from minidl.compiler.trace import CompilationError as CompilationError
from minidl.compiler.trace import trace as trace
