"""Gradient compression: what is sent instead of a gradient, and what becomes of what was not sent.

`compressor.py` says what a compressor is, `message.py` what goes over the wire; then a method a file.
"""

from minidl.compress.compressor import Compressor
from minidl.compress.message import Message
from minidl.compress.top_k import TopK

__all__ = ["Compressor", "Message", "TopK"]
