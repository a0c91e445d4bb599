"""The board: ranks put up what collective they are about to make, and are told when they do not make the same.

Without it most wrong programs return garbage: two ranks that disagree on the operation, the type or the order of their
collectives still find messages that match. Only what must agree is compared; where in the program a call was made is
reported. One disagreement shows by the places alone: two calls of the same description in another order. It is a
*crossing*, and `crossing` below says exactly what that is.
"""

from __future__ import annotations

from typing import NamedTuple

from minidl.cluster.call_site import Site


class Fingerprint(NamedTuple):
    """What a rank says of the collective that it is about to make; all but the `site` must agree over its group.

    `op`, `root`, `algorithm`, `dtype`, `label`: None where the operation has none. `shape`: None unless the operation
    requires that it is the same on all ranks. `site`: where the call was made, see `call_site()`.
    """

    operation: str
    op: str | None = None
    root: int | None = None
    algorithm: str | None = None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    label: str | None = None
    site: Site = Site(0, "unknown")
