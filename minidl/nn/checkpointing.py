"""Activation checkpointing: backward recomputes activations instead of keeping them; and what each stage costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from minidl import kernels
from minidl.arguments import one_of
from minidl.kept_arrays import kept_bytes
from minidl.nn.module import Module
from minidl.nn.segments import Segment, StageCost, check_segments, equal
from minidl.nn.segments import every as every_k
from minidl.nn.stages import Stage, run_stages
from minidl.recomputation import checkpoint, tensors_in, unchanged, with_tensors
from minidl.tensor import Tensor

_M = TypeVar("_M", bound=Module)


def checkpointing(model: _M, segments: int | str | Sequence[Segment] | None = None, *, every: int | None = None) -> _M:
    """Make the model keep only the activations between segments; backward recomputes those inside a segment.

    Parameters
        model     divided by its `stages()`; changed in place, and returned
        segments  number of segments, or the segments themselves, such as those of `segments.least_recomputation`;
                  default: about sqrt(n) for n stages, which keep about 2 sqrt(n) activations instead of n.
                  "selective": recompute only the core of each attention, q k^T, softmax, dropout and the product with
                  v, whose t x t matrices are then not kept
        every     stages per segment, instead of `segments`

    Losses, gradients, running statistics and dropout masks stay the same to the bit; where segments share a parameter
    that one of them uses more than once, its gradient may differ by rounding. The names of the parameters,
    `state_dict()` and `stages()` stay, so a saved state loads with and without checkpointing. Within `no_grad` nothing
    is recomputed. A second call replaces the segments, and what was selected.

    Segments change only calling the whole model. `parallel.Pipeline` calls its stages, and refuses a model with
    segments: give `recompute=True` there instead. "selective" changes the attention layers, and so goes with every
    strategy. It includes a layer of your own if the class has `recomputes_selectively = False`, which becomes True, and
    forward then calls `minidl.checkpoint(core, q, k, v)`.

    In a block of GPT, for b samples of s positions, h features, a heads and w bytes a number, backward keeps
    b s h (16 w + 2) + a b s^2 w bytes (the 2 are dropout's masks) and 4 numbers a position for the norms; with
    "selective", all but a b s^2 w, for 4 b s^2 h flops, and those of softmax, on top of the 24 b s h^2 + 4 b s^2 h of
    its forward pass. At w = 2 that is the 34 b s h of Korthikanti et al.; their matrices take 5 a b s^2, since their
    model also drops attention weights, where minidl keeps 3 (nn.MultiheadAttention) or, without dropout, 2. Their
    formula for flops counts 12 b s^2 h. From 2^20 scores a head on, minidl's attention keeps no matrix, unless it drops
    weights: then nothing is recomputed. Each of t nodes of `parallel.Hybrid(tp=t)` keeps
    b s h (4 w + 2 + 12 w / t) + a b s^2 w / t; with sequence=True and recompute="selective", a t-th of all.

    Raises
        NotImplementedError  the model has no stages
        ValueError           more segments than stages; segments that do not cover the stages; a class that defines
                             `forward` but inherits `stages`, which then may compute something else; "selective" for a
                             model without attention

    Chen et al., Training Deep Nets with Sublinear Memory Cost (arXiv:1604.06174), section 4; Korthikanti et al.,
    Reducing Activation Recomputation in Large Transformer Models (arXiv:2205.05198), sections 4.1 and 5.

    >>> import numpy as np
    >>> from minidl import nn
    >>> model = nn.checkpointing(nn.models.MLP(64, 48, 48, 48, 10), segments=2)
    >>> model(np.ones((5, 64), np.float32)).sum().backward()
    >>> model.layers[0].weight.grad.shape
    (48, 64)

    Fewest flops within a budget of bytes, with costs counted on a minibatch:

    >>> model, x = nn.models.MLP(64, 48, 48, 48, 10), np.ones((5, 64), np.float32)
    >>> chosen = nn.segments.least_recomputation(nn.stage_costs(model, x), budget=4500)
    >>> model = nn.checkpointing(model, chosen)
    """
    if segments is not None and every is not None:
        raise ValueError("checkpointing: give the number of segments or the stages of each (every=), not both")
    if isinstance(segments, str):
        one_of("checkpointing: segments", segments, ["selective"], hint="or give a number of segments")
        check_attention(model)
    for module in attention_layers(model):
        module.recomputes_selectively = segments == "selective"
    if segments == "selective":
        vars(model).pop("forward", None)
        return model
    count = len(model.stages())
    try:
        check_stages(type(model))
    except ValueError as error:
        raise ValueError(f"checkpointing: {error}") from None
    if every is not None:
        chosen = every_k(count, every)
    elif segments is None or not isinstance(segments, Sequence):
        chosen = equal(count, segments)
    else:
        chosen = [Segment(*segment) for segment in segments]
        check_segments(chosen, count)
    vars(model)["forward"] = CheckpointedForward(model, chosen)
    return model


def attention_layers(model: Module) -> list[Any]:
    """The modules whose attention can be recomputed."""
    return [module for module in model.modules() if hasattr(module, "recomputes_selectively")]


def check_attention(model: Module) -> None:
    """Raise ValueError for a model without attention."""
    if not attention_layers(model):
        raise ValueError(
            f"selective recomputation computes attention again in backward, and {type(model).__name__} has no layer of "
            "attention, such as those of nn.models.GPT or nn.MultiheadAttention: recompute all its stages, by "
            "nn.checkpointing(model) or the setting recompute=True of a pipeline"
        )


class CheckpointedForward:
    """A model's forward pass, segment by segment; stored as the model's attribute `forward` in place of the method."""

    def __init__(self, model: Module, segments: Sequence[Segment]) -> None:
        self.model, self.segments = model, tuple(segments)

    def __call__(self, x: Any) -> Any:
        stages = self.model.stages()
        if len(stages) != self.segments[-1].end:
            raise RuntimeError(
                f"the model has {len(stages)} stages, but had {self.segments[-1].end} when its segments were chosen: "
                "call nn.checkpointing again"
            )
        return run_segments(stages, self.segments, x)


def run_segments(
    stages: Sequence[Stage],
    segments: Sequence[Segment],
    x: Any,
    first: int = 0,
    end: Callable[[Any], Any] | None = None,
) -> Any:
    """Apply stages one after another, as `run_stages` does; backward recomputes segments of them, each by itself.

    Parameters
        first  number of the first stage in the model
        end    computes what is returned from the output, such as the loss, within the last segment; None: the output
    """
    for start, stop, recomputed in segments:
        function = partial(_run_segment, stages[start:stop], first + start, end if stop == len(stages) else None)
        x = checkpoint(function, x) if recomputed else function(x)
    return x


def _run_segment(stages: Sequence[Stage], first: int, end: Callable[[Any], Any] | None, x: Any) -> Any:
    output = run_stages(stages, x, first)
    return output if end is None else end(output)


def bypasses_checkpointing(model: Module) -> bool:
    """Whether calling the model's stages one by one would bypass its checkpointing and keep all activations.

    True for a model that is checkpointed as a whole; False if a stage calls the checkpointed module.
    """
    called = {inner for stage in model.stages() for module in stage.modules for inner in module.modules()}
    return any(isinstance(vars(each).get("forward"), CheckpointedForward) for each in {*model.modules()} - called)


def check_stages(model: type[Module]) -> None:
    """Raise ValueError if a class overrides forward but inherits stages."""
    for cls in model.__mro__:
        if "stages" in vars(cls):
            return
        if "forward" in vars(cls):
            raise ValueError(
                f"{cls.__name__} defines forward but inherits stages, which may compute something else: "
                "define stages, too"
            )


def stage_costs(model: Module, x: Any) -> list[StageCost]:
    """Run each of `model.stages()` on the samples x; return its forward flops, and the bytes kept for its backward.

    Its input, parameters and buffers do not count. Random numbers, running statistics and gradients are left as they
    were. A minibatch of another size costs in proportion.

    >>> import numpy as np
    >>> from minidl import nn
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 4))
    >>> [int(cost.output) for cost in stage_costs(model, np.ones((5, 2), np.float32))]
    [60, 60, 80]
    """
    costs, value, inputs = [], x, [x]
    with unchanged():
        for stage in model.stages():
            with kernels.counted() as work:
                output = stage(value)
            tensors = tensors_in(output)
            kept = kept_bytes(tensors, [*inputs, *stage.parameters(), *stage.buffers()])
            costs.append(StageCost(work.flops, kept, sum(tensor.data.nbytes for tensor in tensors)))
            value = with_tensors(output, lambda tensor: Tensor(tensor.data, requires_grad=tensor.requires_grad))
            inputs = tensors_in(value)
    return costs
