"""Mixed precision: 16-bit activations and gradients, arithmetic in float32, with float32 weights or float32 masters.

    scaler = amp.GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        with amp.autocast(dtype="float16"):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

Between two operations a number takes 2 bytes instead of 4. A product is summed in float32 and rounded once. This saves
memory, not time: the processor computes in float32, and the conversions are extra work.

    type      significant bits  smallest above 0  largest  needs GradScaler
    float16   11                6.0e-8            65504    yes: most gradients of a deep network are smaller than 6e-5
    bfloat16  8                 9.2e-41           3.4e38   no: it has the range of float32
    float32   24                1.4e-45           3.4e38

The weights may be in 16 bits too: after `model.to("bfloat16")`, give the model samples of that type, without autocast.
Weights and gradients then take 2 bytes each, and an optimizer keeps a float32 master of each weight, in which small
steps add up. `parallel.Job(precision="bfloat16")` trains so.

References
    Micikevicius et al., Mixed precision training (arXiv:1710.03740), section 3; Kalamkar et al., A study of BFLOAT16
    (arXiv:1905.12322).
"""

from minidl.amp.autocast import autocast
from minidl.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
