"""Whether a person sits in front of this kernel."""

from __future__ import annotations

import sys
from typing import Any


def person_is_there() -> bool:
    """Whether the frontend that runs this cell has a reader who can answer.

    JupyterLab, VS Code and Colab say so with each cell (`allow_stdin` of the kernel's execute request). nbclient and
    nbconvert, which run notebooks without a reader, say no. Without a kernel (a script, pytest) nobody is there.
    """
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython else None
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return False
    return bool(kernel.get_parent("shell").get("content", {}).get("allow_stdin", False))
