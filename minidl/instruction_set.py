"""Which instruction set numpy's matrix products use: AVX-512 wherever the processor has it.

OpenBLAS has one set of kernels for each generation of processors and chooses among them once, when numpy is loaded. It
recognizes many processors by vendor, family and model alone. A virtual machine often reports the model of an older
processor together with the features of the real one; OpenBLAS then runs AVX2 kernels at half the speed. The environment
variable OPENBLAS_CORETYPE names the kernels to use instead, and counts only before numpy is loaded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

VARIABLE = "OPENBLAS_CORETYPE"
WIDEST = "SKYLAKEX"  # OpenBLAS's AVX-512 kernels; numpy's wheels have no others
COMMON = "HASWELL"  # OpenBLAS's AVX2 kernels
AVX512_KERNELS = ("SkylakeX", "Cooperlake", "SapphireRapids")
UNSELECTABLE = ("SapphireRapids", "Unknown")  # architectures that OPENBLAS_CORETYPE cannot name

CPUINFO = "/proc/cpuinfo"
FEATURES = frozenset({"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"})  # what the SKYLAKEX kernels need

# The models of Intel's family 6 that OpenBLAS 0.3.31 recognizes without looking for AVX-512. Cannon Lake (0x66) is left
# out: it has AVX-512, but computes no more with it than with AVX2.
OLDER_INTEL = frozenset(
    [
        *(*range(0x0C), 0x0D, 0x0E, 0x0F, 0x16, 0x17, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F),  # before Sandy Bridge
        *(0x25, 0x2A, 0x2C, 0x2D, 0x2E, 0x2F, 0x37, 0x3A, 0x3E),  # Sandy Bridge, Ivy Bridge, small cores
        *(0x3C, 0x3D, 0x3F, 0x45, 0x46, 0x47, 0x4C, 0x4D, 0x4E, 0x4F, 0x56, 0x57, 0x5C, 0x5E, 0x5F, 0x7A),  # to Skylake
        *(0x8E, 0x9E, 0xA5, 0xA6),  # Kaby Lake, Coffee Lake, Comet Lake
    ]
)
NEWER_INTEL_FAMILY = 15  # from this family on OpenBLAS 0.3.31 sees a Pentium 4; families 18 and 19 are new processors
OLDER_AMD_FAMILY = 0x17  # Zen and Zen 2; from family 0x19 on (Zen 4) OpenBLAS looks for AVX-512


class Processor(NamedTuple):
    """A processor by name, as OpenBLAS sees it, and its features, as Linux reports them."""

    vendor: str
    family: int
    model: int
    features: frozenset[str]

    @property
    def has_avx512(self) -> bool:
        return self.features >= FEATURES

    @property
    def is_taken_for_an_older_one(self) -> bool:
        """Whether OpenBLAS chooses its kernels by the name alone, and chooses kernels without AVX-512."""
        if self.vendor == "GenuineIntel":
            return self.family >= NEWER_INTEL_FAMILY or (self.family == 6 and self.model in OLDER_INTEL)
        return self.vendor == "AuthenticAMD" and self.family == OLDER_AMD_FAMILY


def use_avx512() -> None:
    """Let OpenBLAS use AVX-512 where the processor has it and OpenBLAS would not find it.

    Sets OPENBLAS_CORETYPE in this process's environment, which child processes inherit. Nothing happens if the variable
    is set already, if numpy is loaded already (see `lost` and `of_children`), or on a system other than 64-bit Linux on
    an x86 processor.
    """
    if VARIABLE in os.environ or "numpy" in sys.modules:
        return
    found = processor()
    if found is not None and found.has_avx512 and found.is_taken_for_an_older_one:
        os.environ[VARIABLE] = WIDEST


def processor() -> Processor | None:
    """The processor of this machine; None where the system does not say, or it is no x86 processor in 64-bit mode."""
    if sys.platform != "linux" or os.uname().machine != "x86_64" or sys.maxsize < 2**32:
        return None
    try:
        with open(CPUINFO, encoding="utf-8", errors="replace") as lines:
            return _parsed(_first_block(lines))
    except (OSError, KeyError, ValueError):  # a sandbox without /proc, or one with its own idea of the file
        return None


def _first_block(lines: Iterable[str]) -> dict[str, str]:
    """The fields of the first core; a machine may have hundreds."""
    fields: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon and fields:
            break
        fields[name.strip()] = value.strip()
    return fields


def _parsed(fields: dict[str, str]) -> Processor:
    features = frozenset(fields["flags"].split())
    return Processor(fields["vendor_id"], int(fields["cpu family"]), int(fields["model"]), features)


@cache
def openblas() -> str | None:
    """The kernels that OpenBLAS runs in this process, in its own words ("Haswell", "SkylakeX"); None for another BLAS.

    Loads numpy.
    """
    import numpy  # noqa: F401
    from threadpoolctl import threadpool_info

    found = [pool.get("architecture") for pool in threadpool_info() if pool["internal_api"] == "openblas"]
    return found[0] if found else None


def of_children() -> dict[str, str]:
    """The environment with which a child process runs the same OpenBLAS kernels as this process.

    Other kernels add in another order, so their results differ in the last bits. Where numpy was loaded before minidl,
    both run what OpenBLAS has chosen by itself.
    """
    kernels = openblas()
    if kernels is None or kernels in UNSELECTABLE or processor() is None:
        return {}
    return {VARIABLE: kernels.upper()}


def common() -> dict[str, str]:
    """The environment in which numpy and numba give the same bits on every x86 processor with AVX2; {} elsewhere.

    Wider instructions add more numbers at once, and so in another order. A training run that doubles each rounding
    error in a few steps then ends elsewhere: the same text and seed gave 10.6 % and 11.4 % test error on two machines.
    """
    found = processor()
    if found is None or not found.features >= {"avx2", "fma"}:
        return {}
    return {
        VARIABLE: COMMON,
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "+avx2,+fma",  # without it, numba adds all that this processor has to haswell's own
    }


def lost() -> str | None:
    """What to type where OpenBLAS runs without the AVX-512 that the processor has; None where nothing is lost."""
    found, kernels = processor(), openblas()
    if found is None or not found.has_avx512 or kernels is None or kernels in AVX512_KERNELS:
        return None
    asked = os.environ.get(VARIABLE, "")
    if asked.upper() == kernels.upper():
        remedy = f"start Python without {VARIABLE}={asked}"
    else:
        remedy = f"start Python with {VARIABLE}={WIDEST}"
        if found.is_taken_for_an_older_one:
            remedy += ", or import minidl before numpy"
    return (
        f"OpenBLAS runs its {kernels} kernels, without the AVX-512 of this processor: matrix products take up to twice "
        f"as long; {remedy}"
    )
