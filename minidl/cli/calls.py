"""A strategy or a compressor as a user types it, `local_sgd:period=8` or `top_k(0.01)`: read, checked and built."""

from __future__ import annotations

import ast
import inspect
import keyword
import re
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from minidl.arguments import one_of
from minidl.cli.components import Classes, find, settings, snake_case
from minidl.cli.value_types import fits, in_words

LONGEST = 300  # characters
_HEAD = re.compile(r"(?P<name>[\w-]+)\s*(?::(?P<settings>.*)|\((?P<inside>.*)\))?", re.S)
_CONSTANTS = {"true": True, "false": False, "none": None}  # as other languages write them
_RESERVED = re.compile(rf"(?<==)\s*({'|'.join(sorted({*keyword.kwlist} - {'True', 'False', 'None'}))})\s*(?=[,)]|$)")
"""A reserved word of Python as the value of a setting, as in `variant=async`: read as a plain word."""
_DIGIT_FIRST = re.compile(r"(?<==)\s*(?!\d+[eE]\d+\b)(\d+[a-z]\w*)\s*(?=[,)]|$)")
"""A word that begins with a digit, as in `schedule=1f1b`, which is no number such as 1e3."""
_UNREADABLE = (SyntaxError, TypeError, ValueError, RecursionError, MemoryError)


def call_of(kind: str, text: str) -> ast.Call:
    """Parse `name`, `name:setting=value,...` or `name(value, setting=value, ...)`; nothing in it is run.

    Raises
        ValueError  the text is none of these
    """
    match = _HEAD.fullmatch(text.strip()) if len(text) <= LONGEST else None
    if match is None:
        raise ValueError(f"{text[:LONGEST]!r} is no {kind}: write a name, or name:setting=value,setting=value")
    name = match["name"].replace("-", "_")
    inside = match["settings"] or match["inside"] or ""
    try:
        readable = _DIGIT_FIRST.sub(r"'\1'", _RESERVED.sub(r"'\1'", inside))
        call = ast.parse(f"_({readable})", mode="eval").body
    except _UNREADABLE:
        call = None
    if not isinstance(call, ast.Call) or not (isinstance(call.func, ast.Name) and call.func.id == "_"):
        raise ValueError(
            f"the settings in {text!r} cannot be read: write {name}:setting=value,setting=value; a value with "
            "settings is written with parentheses, as in compressor=top_k(0.01)"
        )
    call.func = ast.Name(name)
    return call


def build(kind: str, call: ast.Call, known: Classes, nested: Classes, others: Iterable[str] = ()) -> Any:
    """Make the object that the call names.

    Parameters
        kind    what the call stands for, for messages: "strategy", or a setting and its owner
        known   the classes that the call can name
        nested  the classes that a setting can name: a setting whose type is a base of some of them is one of those
        others  further settings that a user can type, which the caller has removed from the call; messages name them

    Raises
        ValueError  says what is wrong and what there is
    """
    cls = find(kind, ast.unparse(call.func), known)
    name, own = snake_case(cls.__name__), settings(cls)
    values = {
        setting: value_of(name, setting, node, own[setting].annotation, nested)
        for setting, node in arguments(name, call, own, others).items()
    }
    try:
        return cls(**values)
    except (TypeError, ValueError) as error:
        is_named = cls.__name__ in str(error)
        raise ValueError(str(error) if is_named else f"{name}: {error}") from error


def value_of(owner: str, setting: str, node: ast.expr, hint: Any, nested: Classes) -> Any:
    """The value of a setting of type `hint`: a number, a word, a list of them, or an object of a class in `nested`.

    Raises
        ValueError  names the owner of the setting, the type and what was typed
    """
    refusal = f"{owner}: {setting} must be {in_words(hint)}, got "
    if isinstance(node, ast.Name) and node.id in _CONSTANTS and not fits(node.id, hint):
        node = ast.Constant(_CONSTANTS[node.id])
    bases = tuple(one for one in (hint, *get_args(hint)) if inspect.isclass(one))
    if fitting := {name: cls for name, cls in nested.items() if issubclass(cls, bases)}:
        node = _with_underscores(node)
        call = node if isinstance(node, ast.Call) else ast.Call(node, [], [])
        if isinstance(call.func, ast.Name):
            return build(f"{owner}: {setting}", call, fitting, nested)
    try:
        value = _word(node) or ast.literal_eval(node)
    except _UNREADABLE:
        raise ValueError(f"{refusal}{ast.unparse(node)}") from None
    if not fits(value, hint):
        raise ValueError(f"{refusal}{ast.unparse(node)}")
    return value


def _word(node: ast.expr) -> str:
    """A word, which needs no quotation marks, also with hyphens, as `zb-h1`; "" for anything else."""
    text = ast.unparse(node).replace(" - ", "-") if isinstance(node, (ast.Name, ast.BinOp)) else ""
    return text if re.fullmatch(r"[A-Za-z_]\w*(-[A-Za-z_]\w*)*", text) else ""


def _with_underscores(node: ast.expr) -> ast.expr:
    """`error-feedback(...)`, which reads as a difference, as `error_feedback(...)`."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)):
        return node
    left, right = _with_underscores(node.left), node.right
    name = right.func if isinstance(right, ast.Call) else right
    if not (isinstance(left, ast.Name) and isinstance(name, ast.Name)):
        return node
    whole = ast.Name(f"{left.id}_{name.id}")
    return ast.Call(whole, right.args, right.keywords) if isinstance(right, ast.Call) else whole


def arguments(
    name: str, call: ast.Call, known: Mapping[str, inspect.Parameter], others: Iterable[str]
) -> dict[str, ast.expr]:
    """The nodes of the call by the names of the settings."""
    there_is = f"its settings are {', '.join(known)}" if known else "it has no settings"
    given: dict[str, ast.expr] = {}
    for pair in call.keywords:
        if pair.arg is None:
            raise ValueError(f"{name}: write setting=value, not **")
        if not known and not others:
            raise ValueError(f"{name} has no settings, got {pair.arg!r}")
        one_of(f"a setting of {name}", pair.arg, dict.fromkeys((*known, *others)))
        if pair.arg in given:
            raise ValueError(f"{name}: {pair.arg} is given twice")
        given[pair.arg] = pair.value
    try:
        return inspect.Signature([*known.values()]).bind(*call.args, **given).arguments
    except TypeError as error:  # too many values, one that is given twice, or one that is missing
        raise ValueError(f"{name}: {error}; {there_is}") from None
