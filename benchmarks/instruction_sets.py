"""The instruction set that each side of a comparison uses: a ratio means little where they differ."""

from __future__ import annotations

from minidl import instruction_set


def of_minidl() -> str:
    """numpy's matrix products, and the kernels that numba compiles for this processor."""
    from llvmlite.binding import get_host_cpu_features

    features = get_host_cpu_features()
    widest = next((name for name in ("avx512f", "avx2", "avx", "neon") if features.get(name)), "no vectors known")
    openblas = instruction_set.openblas()
    return f"numpy {f'OpenBLAS {openblas}' if openblas else 'not OpenBLAS'}, numba {widest}"


def of_torch() -> str:
    """PyTorch's own kernels; its matrix products (MKL, oneDNN) choose their own."""
    import torch

    return f"PyTorch {torch.backends.cpu.get_cpu_capability()}"
