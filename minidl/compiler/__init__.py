"""x"""
from minidl.compiler.graph import Graph as Graph
from minidl.compiler.trace import trace as trace
