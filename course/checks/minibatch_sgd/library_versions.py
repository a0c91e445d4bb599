"""What of the library an answer of chapter 02 is refused: samplers and update rules; `train` may use all of it."""

from __future__ import annotations

from course.judging import Builds

SAMPLERS = Builds("minidl.data.loader", "minidl.data.sampler", "minidl.data.shards", instead="numpy")
UPDATE_RULES = Builds("minidl.optim", "minidl.kernels", instead="numpy")

BUILDS = {"minibatches": SAMPLERS, **dict.fromkeys(("momentum_step", "corrected_step", "adam_step"), UPDATE_RULES)}
