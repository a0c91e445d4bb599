"""Gradient compression: gradients are sent in fewer bytes, and what was left out may be sent later.

    what a compressor is    compressor
    sums over the nodes     exchange (the messages of several parameters as one), sparse_all_reduce
    random numbers          random_choices
    compiled, same bits     kernels/jit/few_entries, few_bits

One file per method:

    few entries             top_k (and Threshold), random_k, dgc; base class in sparse
    few bits per number     half, qsgd, terngrad, one_bit (and Sign); base class in quantizer
    a low rank              power_sgd
    votes                   signum
    around another method   error_feedback, quantized_all_reduce, lossless (by Elias' code, or huffman's), coding_time;
                            base class in wrapper
"""

from minidl.compress.coding_time import CodingTime
from minidl.compress.compressor import Compressor, Message
from minidl.compress.dgc import DGC
from minidl.compress.error_feedback import ErrorFeedback
from minidl.compress.half import Half
from minidl.compress.lossless import Lossless
from minidl.compress.one_bit import OneBit, Sign
from minidl.compress.power_sgd import PowerSGD
from minidl.compress.qsgd import QSGD
from minidl.compress.quantized_all_reduce import QuantizedAllReduce
from minidl.compress.quantizer import Quantizer
from minidl.compress.random_k import RandomK
from minidl.compress.signum import Signum
from minidl.compress.sparse import Sparse
from minidl.compress.terngrad import TernGrad
from minidl.compress.top_k import Threshold, TopK

__all__ = [
    "DGC",
    "QSGD",
    "CodingTime",
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
    "Sparse",
    "TernGrad",
    "Threshold",
    "TopK",
]
