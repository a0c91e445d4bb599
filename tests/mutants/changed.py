"""Makes a wrong answer from a right one."""

from __future__ import annotations


def changed(code: str, *replacements: str) -> str:
    """`code` with each first of a pair in `replacements` replaced by the second; each must be there.

    >>> changed("for k in range(p - 1): step(k)", "p - 1", "p")
    'for k in range(p): step(k)'
    """
    for old, new in zip(replacements[::2], replacements[1::2], strict=True):
        if old not in code:
            raise ValueError(f"{old!r} is not in the code that is to be changed")
        code = code.replace(old, new)
    return code
