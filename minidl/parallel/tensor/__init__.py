"""Tensor parallelism: layers whose weights are divided over ranks, and the strategy that puts them on a mesh.

From top to bottom; a file imports only from lines below its own:

    hybrid            the strategy: data, pipeline and tensor parallelism together
    sharded_features  which layers get a shard of the features, and what they become
    layouts           which layer of a model is divided how
    embedding         a table of vectors, divided by its rows
    on_tiles          layers that are divided by pixels, too
    convolution       convolutions, divided by filters, by the channels that they read, or by both; batch norm between
    linear            linear layers, divided by their outputs or by their inputs
    loss              cross entropy of logits that are divided by classes
    dropout           the share of a mask
    collectives       collectives with a gradient: a divided layer of your own is made of `copied`, `summed`, `gathered`
"""

from minidl.parallel.tensor.collectives import copied, gathered, summed
from minidl.parallel.tensor.convolution import ColumnConv2d, GridConv2d, RowConv2d, SampleConv2d, ShardedBatchNorm
from minidl.parallel.tensor.dropout import ShardedDropout
from minidl.parallel.tensor.embedding import PositionEmbedding, VocabularyEmbedding
from minidl.parallel.tensor.hybrid import Hybrid
from minidl.parallel.tensor.layouts import layout_of, split_layers
from minidl.parallel.tensor.linear import ColumnLinear, RowLinear
from minidl.parallel.tensor.loss import vocabulary_cross_entropy

__all__ = [
    "ColumnConv2d",
    "ColumnLinear",
    "GridConv2d",
    "Hybrid",
    "PositionEmbedding",
    "RowConv2d",
    "RowLinear",
    "SampleConv2d",
    "ShardedBatchNorm",
    "ShardedDropout",
    "VocabularyEmbedding",
    "copied",
    "gathered",
    "layout_of",
    "split_layers",
    "summed",
    "vocabulary_cross_entropy",
]
