"""Gradient compression: what is sent instead of a gradient, and what becomes of what was not sent.

`compressor.py` says what a compressor is, `message.py` what goes over the wire, `exchange.py` how the messages of
several parameters travel as one, `own_choices.py` where a node's random numbers come from; then a method a file:

    few entries            top_k, random_k, threshold, dgc (on sparse); sums of sparse vectors: sparse_all_reduce
    few bits an entry      half, qsgd, terngrad, one_bit, sign (on quantizer); sums round a ring: quantized_all_reduce
    few numbers a matrix   power_sgd
    votes                  signum
    what was left out      error_feedback (on wrapper, as quantized_all_reduce)
    without loss           lossless, by the codes in huffman and elias
"""

from minidl.compress.compressor import Compressor
from minidl.compress.dgc import DGC
from minidl.compress.error_feedback import ErrorFeedback
from minidl.compress.half import Half
from minidl.compress.lossless import Lossless
from minidl.compress.message import Message
from minidl.compress.one_bit import OneBit
from minidl.compress.power_sgd import PowerSGD
from minidl.compress.qsgd import QSGD
from minidl.compress.quantized_all_reduce import QuantizedAllReduce
from minidl.compress.quantizer import Quantizer
from minidl.compress.random_k import RandomK
from minidl.compress.sign import Sign
from minidl.compress.signum import Signum
from minidl.compress.terngrad import TernGrad
from minidl.compress.threshold import Threshold
from minidl.compress.top_k import TopK

__all__ = [
    "DGC",
    "QSGD",
    "Compressor",
    "ErrorFeedback",
    "Half",
    "Lossless",
    "Message",
    "OneBit",
    "PowerSGD",
    "QuantizedAllReduce",
    "Quantizer",
    "RandomK",
    "Sign",
    "Signum",
    "TernGrad",
    "Threshold",
    "TopK",
]
