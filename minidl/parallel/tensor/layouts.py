"""Which layer of a model is divided how: a layout maps names of layers to the layers that replace them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from minidl.cluster.comm import Communicator
from minidl.nn import Conv2d, Dropout, Linear, MixtureOfExperts, Module, models, replace_layers
from minidl.parallel.tensor.convolution import ColumnConv2d, RowConv2d, SampleConv2d, ShardedBatchNorm
from minidl.parallel.tensor.dropout import ShardedDropout
from minidl.parallel.tensor.embedding import PositionEmbedding, VocabularyEmbedding
from minidl.parallel.tensor.linear import ColumnLinear, RowLinear

Layout = Mapping[str, Callable[[Any, Communicator], Module]]
"""For the names of layers, `*` stands for any text: a function `(layer, comm)` that makes the divided layer."""


MOST_NAMED = 12
"""Layers of a model in the message about one that it does not have."""


def gpt_layout(model: models.GPT, sequence: bool = False) -> Layout:
    """Megatron's layout of a transformer: 2 all-reduces a block in forward and 2 in backward.

    sequence: whether every rank has a slice of the positions where norms and dropout work, between the divided layers.
    """
    slices = 1 if sequence else None
    block: Any = next(iter(model.transformer.h), None)
    if block is None:
        raise ValueError("a GPT without blocks has no layers to divide: n_layer must be at least 1")
    if isinstance(block.mlp, MixtureOfExperts):
        raise ValueError(
            "a GPT with experts is divided by its experts, not along tp: use ep instead of tp, or leave out experts"
        )
    layout: dict[str, Callable[[Any, Communicator], Module]] = {
        "transformer.wte": partial(VocabularyEmbedding, sequence=sequence),
        "*.attn.c_attn": partial(
            ColumnLinear, blocks=3, unit=block.attn.head_size, slices=slices
        ),  # query, key and value
        "*.attn.c_proj": partial(RowLinear, slices=slices),
        "*.mlp.c_fc": partial(ColumnLinear, slices=slices),  # GELU follows: it needs whole sums
        "*.mlp.c_proj": partial(RowLinear, slices=slices),
        "lm_head": partial(ColumnLinear, gather="evaluation", slices=slices),
    }
    if sequence:
        layout["transformer.wpe"] = PositionEmbedding
        dropouts = ("transformer.drop", "*.attn.dropout", "*.mlp.dropout")
        layout |= dict.fromkeys(dropouts, partial(ShardedDropout, axis=1))
    return layout


def pairs_layout(model: models.AlexNet | models.VGG16) -> Layout:
    """Every layer with weights divided: by its outputs, by its inputs, and so on; dropouts in between are sharded."""
    layers = dict(model.named_modules())
    weighted = [name for name, layer in layers.items() if isinstance(layer, (Conv2d, Linear))]
    layout: dict[str, Callable[[Any, Communicator], Module]] = {}
    for column, row in zip(weighted[::2], weighted[1::2], strict=False):  # the last of an odd number stays whole
        layout[column] = ColumnConv2d if isinstance(layers[column], Conv2d) else ColumnLinear
        layout[row] = RowConv2d if isinstance(layers[row], Conv2d) else RowLinear
        between = list(layers)[list(layers).index(column) : list(layers).index(row)]
        layout |= {name: ShardedDropout for name in between if isinstance(layers[name], Dropout)}
    return layout


def samples_layout(model: Module) -> Layout:
    """One weird trick: convolutions of slices of the samples, then linear layers that are divided.

    An all-gather of the samples, and in backward a reduce-scatter of their gradients, stand between both; the logits of
    all samples are divided by classes.

    References
        Krizhevsky, One weird trick for parallelizing convolutional neural networks (arXiv:1404.5997), scheme (a).
    """
    if not isinstance(model, (models.AlexNet, models.VGG16, models.LeNet)):
        raise ValueError(
            f"slices of the samples are for convolutions before linear layers, of AlexNet, VGG16 or LeNet, not for "
            f"{type(model).__name__}: leave out sample_slices"
        )
    layers = dict(model.named_modules())
    convolutions, linear = (
        [name for name, layer in layers.items() if isinstance(layer, kind)] for kind in (Conv2d, Linear)
    )
    first, second, head = linear
    names = list(layers)
    layout: dict[str, Callable[[Any, Communicator], Module]] = {convolutions[0]: SampleConv2d}
    for name, layer in layers.items():
        if isinstance(layer, Dropout):
            of_features = names.index(first) < names.index(name) < names.index(second)
            layout[name] = ShardedDropout if of_features else partial(ShardedDropout, axis=0)
    return layout | {
        first: partial(ColumnLinear, slices=0),
        second: partial(RowLinear, slices=0),
        head: partial(ColumnLinear, gather="evaluation", slices=0),
    }


def layout_of(model: Module, sequence: bool = False, sample_slices: bool = False) -> Layout:
    """The layout of a model of `nn.models`: in pairs, a layer divided by its outputs, then one by its inputs.

    A ResNet's pairs are the first two convolutions of each block; its stem, its head and the rest of a bottleneck stay
    whole. `sequence` is for GPT, `sample_slices` for AlexNet, VGG16 and LeNet.

    Raises
        ValueError    no layout is known
    """
    if sample_slices:
        return samples_layout(model)
    if isinstance(model, models.GPT):
        return gpt_layout(model, sequence)
    if sequence:
        raise ValueError(f"slices of the positions are for a GPT, not for {type(model).__name__}: leave out sequence")
    match model:
        case models.MLP():
            pairs = len(model.layers) // 2  # the last of an odd number stays whole
            return {f"layers.{i}": RowLinear if i % 2 else ColumnLinear for i in range(2 * pairs)}
        case models.AlexNet() | models.VGG16():
            return pairs_layout(model)
        case models.LeNet():
            return {"conv1": ColumnConv2d, "conv2": RowConv2d, "fc1": ColumnLinear, "fc2": RowLinear}
        case models.ResNet():
            return {"layer*.conv1": ColumnConv2d, "layer*.bn1": ShardedBatchNorm, "layer*.conv2": RowConv2d}
    raise ValueError(
        f"no layout is known for {type(model).__name__}, but for GPT, MLP, LeNet, AlexNet, VGG16 and ResNet: give one, "
        "layout={name: ColumnLinear, RowLinear, ColumnConv2d or RowConv2d, ...}"
    )


def split_layers(model: Module, comm: Communicator, layout: Layout) -> Module:
    """Replace layers of the model as the layout says, cut their parameters, and return the model.

    Parameters
        model   changed in place; the names of its parameters stay
        comm    the ranks that divide the layers
        layout  name, or pattern with `*`, to the function that makes the divided layer

    All ranks have equal shares. If a width is no multiple of the number of ranks, make it the next multiple, as
    Megatron-LM does with its vocabulary; divide by another number; or leave the layer out of the layout, so that every
    rank has it whole: a `ColumnLinear` and its `RowLinear` together.

    Raises
        ValueError    a pattern that fits no layer; a size that the ranks do not divide, or a function that divides
                      another type of layer: the message names the layer
        TypeError     no layout

    >>> from minidl import cluster, nn
    >>> def program(comm):
    ...     model = split_layers(nn.models.MLP(4, 6, 2), comm, {"layers.0": ColumnLinear, "layers.1": RowLinear})
    ...     return [parameter.shape for parameter in model.parameters()]
    >>> cluster.launch(program, nodes=2, on="simulation").results[0]
    [(3, 4), (3,), (2, 3), (2,)]
    """
    if not isinstance(layout, Mapping) or not all(map(callable, layout.values())):
        raise TypeError(f"a layout is {{name: ColumnLinear or RowLinear, ...}}, got {layout!r}")
    unused = dict.fromkeys(layout)
    named = dict.fromkeys(name.rpartition(".")[0] for name, _ in model.named_parameters())

    def rule(name: str, module: Module) -> Module | None:
        for pattern, divided in layout.items():
            if fnmatchcase(name, pattern):
                unused.pop(pattern, None)
                try:
                    return divided(module, comm)
                except (TypeError, ValueError) as error:
                    raise ValueError(
                        f"{name or 'the model'} cannot be divided by {comm.size} ranks: {error}"
                    ) from error
        return None

    replace_layers(model, rule)
    if unused:
        some = [*list(named)[:MOST_NAMED], *["..."] * (len(named) > MOST_NAMED)]
        raise ValueError(
            f"the layout names {next(iter(unused))!r}, but the model has no such layer: those with parameters are "
            f"{', '.join(some)}"
        )
    return model
