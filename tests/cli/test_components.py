"""Strategies and compressors by name: all that there is, with checked settings, and what is wrong in one sentence."""

from __future__ import annotations

import itertools
import re
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pytest

from minidl import compress, parallel
from minidl.cli import components, strategies
from minidl.cli.components import fits
from minidl.cli.strategies import COMPRESSORS, STRATEGIES
from tests.tiers import exhaustively

BASES = (parallel.Strategy, compress.Compressor, compress.Quantizer, compress.Sparse)  # exported to be subclassed


def parse(text: str) -> parallel.Strategy:
    """The strategy alone."""
    return strategies.parse(text)[0]


def typed(cls: type) -> str:
    """The class with a value for each setting that has no default, as it is typed."""
    values = {int: "2", float: "0.5", str: "auto", compress.Compressor: "sign", compress.Quantizer: "sign"}
    needed = [setting for setting in components.settings(cls).values() if setting.default is setting.empty]
    return f"{components.snake_case(cls.__name__)}({','.join(values[one.annotation] for one in needed)})"


def test_every_exported_strategy_and_compressor_can_be_named() -> None:
    for package, base in ((parallel, parallel.Strategy), (compress, compress.Compressor)):
        exported = [one for name in package.__all__ if isinstance(one := getattr(package, name), type)]
        for cls in (cls for cls in exported if issubclass(cls, base)):
            if cls in BASES:
                assert cls not in (STRATEGIES | COMPRESSORS).values()
            elif issubclass(cls, parallel.Strategy):
                assert isinstance(parse(typed(cls)), cls)
            else:
                strategy = parse(f"synchronous:compressor={typed(cls)}")
                assert isinstance(strategy, parallel.Synchronous)
                assert isinstance(strategy.compressor, cls)


def test_compressors_around_compressors_and_lists_of_numbers_can_be_typed() -> None:
    for text, compressor in {
        "sign": compress.Sign(),
        "power_sgd(4)": compress.PowerSGD(4),
        "ef(powersgd(4,warm_start=False,seed=3))": compress.ErrorFeedback(compress.PowerSGD(4, False, 3)),
        "error-feedback(top-k(0.1))": compress.ErrorFeedback(compress.TopK(0.1)),
        "ErrorFeedback(topk(density=0.1))": compress.ErrorFeedback(compress.TopK(0.1)),
        "lossless(qsgd(16))": compress.Lossless(compress.QSGD(16)),
        "lossless(terngrad(2.5), code=elias)": compress.Lossless(compress.TernGrad(2.5), "elias"),
        "quantized_all_reduce(half(bf16))": compress.QuantizedAllReduce(compress.Half("bf16")),
        "dgc(0.01, warmup=(0.25, 0.1))": compress.DGC(0.01, warmup=(0.25, 0.1)),
        "dgc(0.01, momentum=0, warmup=())": compress.DGC(0.01, 0, warmup=()),
        "random_k(0.1, seed=None)": compress.RandomK(0.1, seed=None),
    }.items():
        strategy = parse(f"synchronous:compressor={text},algorithm=ring")
        assert isinstance(strategy, parallel.Synchronous)
        assert strategy.algorithm == "ring"
        assert repr(strategy.compressor) == repr(compressor)


WORDS = "fast -1 None (1,) sign topk(0.5)"  # a name, numbers, no value, a list, compressors
MORE_WORDS = "1.5 True 1e999 [['a']] {} {1:2} 1j b'x' ... serial '' 10**9 x.y"


@pytest.mark.parametrize("values", [WORDS, *exhaustively(MORE_WORDS)])
def test_a_value_of_a_wrong_type_is_refused_in_a_sentence_that_names_its_owner(values: str) -> None:
    """Each setting of each class in turn gets each value; where it is right, there is an object."""
    for value, (name, cls) in itertools.product(values.split(), (STRATEGIES | COMPRESSORS).items()):
        needed = typed(cls).partition("(")[2][:-1]
        for position, setting in enumerate(components.settings(cls)):
            others = needed.split(",") if needed else []
            if position < len(others):
                others[position] = value
            else:
                others.append(f"{setting}={value}")
            text = f"{name}({','.join(others)})"
            try:
                parse(text if name in STRATEGIES else f"synchronous:compressor={text}")
            except FileNotFoundError:
                assert (setting, value) == ("schedule", "x.y")  # a file
            except ValueError as error:
                sentence = str(error)
                assert name in sentence or cls.__name__ in sentence
                for internal in ("not supported between", "unsupported operand", "object is not", "has no attribute"):
                    assert internal not in sentence


def test_every_class_can_be_described_and_without_settings_has_its_defaults_which_are_of_their_types() -> None:
    for name, cls in (STRATEGIES | COMPRESSORS).items():
        assert components.description(cls).endswith("."), name
        for setting, parameter in components.settings(cls).items():
            assert setting in components.defaults(cls)
            if parameter.default is not parameter.empty:
                assert fits(parameter.default, parameter.annotation), (name, setting)
    for name, cls in STRATEGIES.items():
        assert parse(name) == cls()


def test_capitals_hyphens_and_underscores_do_not_matter_and_true_false_and_none_may_be_lower_case() -> None:
    for text in ("local_sgd", "local-sgd", "LocalSGD", "localsgd", "LOCAL_SGD", " local_sgd "):
        assert parse(text) == parallel.LocalSGD()
    assert parse("post-local-sgd:post-local-after=2") == parallel.PostLocalSGD(post_local_after=2)
    for setting in ("compressor=none", "overlap=true", "overlap=false"):
        name, value = setting.split("=")
        assert parse(f"synchronous:{setting}") == parse(f"synchronous:{name}={value.title()}")
    assert parse("synchronous:compressor=None") == parallel.Synchronous()
    assert parse("gossip:topology=none") == parallel.Gossip("none")


def test_settings_are_given_after_a_colon_or_in_parentheses_by_name_or_place() -> None:
    for text in (
        "synchronous:bucket_mb=2,algorithm=ring",
        "synchronous:bucket_mb=2,\n  algorithm=ring",
        "synchronous(2, algorithm='ring')",
        "synchronous:2,'ring'",
    ):
        assert parse(text) == parallel.Synchronous(bucket_mb=2, algorithm="ring")


WRONG = [
    ("synchronus", "or 'synchronous', got 'synchronus': did you mean 'synchronous'?"),
    ("topk", "strategy must be 'backup_workers', "),
    ("synchronous:bucket=2", "a setting of synchronous must be 'bucket_mb', "),
    ("local_sgd:outer_momentum=0.9", "has no setting 'outer_momentum': it is a setting of diloco, slowmo"),
    ("parameter_server:fetch_every=2", "has no setting 'fetch_every': it is a setting of downpour"),
    ("synchronous:compressor=sign(momentum=0.9)", "sign has no setting 'momentum': it is a setting of dgc, signum"),
    ("synchronous:bucket_mb=fast", "synchronous: bucket_mb must be a number, got fast"),
    ("synchronous:algorithm=1", "synchronous: algorithm must be a word, got 1"),
    ("serial:shards=2.5", "serial: shards must be a whole number, got 2.5"),
    ("serial:1,2,3", "serial: too many positional arguments; its settings are shards, micro_batches"),
    ("serial:1,shards=2", "serial: multiple values for argument 'shards'; its settings are shards"),
    ("serial:shards=1,shards=2", "serial: shards is given twice"),
    ("serial:shards=0", "Serial: shards must be at least 1, got 0"),
    ("synchronous:compressor=topk", "top_k: missing a required argument: 'density'; its settings are density"),
    ("synchronous:compressor=tpok(1)", "or 'top_k', got 'tpok': did you mean 'top_k'?"),
    ("synchronous:compressor=serial", "synchronous: compressor must be 'coding_time', 'dgc', "),
    ("synchronous:compressor=1", "synchronous: compressor must be a compressor or None, got 1"),
    ("synchronous:bucket_mb=1e999", "synchronous: bucket_mb must be a number, got 1e999"),
    (
        "synchronous:compressor=lossless(topk(0.1))",
        "lossless: quantizer must be 'one_bit', 'qsgd', 'sign' or 'tern_grad', got 'topk'",
    ),
    ("synchronous:compressor=dgc(0.1,warmup=fast)", "dgc: warmup must be a sequence (a number, ...), got fast"),
    ("gossip:topology=((1, 2), (3,))", "gossip: "),
    ("synchronous:compressor=topk:density=0.1", "is written with parentheses, as in compressor=top_k(0.01)"),
    ("synchronous:compressor=top-k-l(0.1)", "or 'top_k', got 'top_k_l': did you mean 'top_k'?"),
    ("synchronous:compressor=sign(1)", "sign: too many positional arguments; it has no settings"),
    ("synchronous:compressor=sign(a=1)", "sign has no settings, got 'a'"),
    ("", "'' is no strategy: write a name, or name:setting=value"),
    ("synchronous:(", "the settings in 'synchronous:(' cannot be read"),
    ("synchronous:\0", "cannot be read"),
    ("synchronous:lr=", "cannot be read"),
    ("synchronous:algorithm=ring,2", "cannot be read"),
    ("synchronous:compressor=ef(topk:0.1)", "is written with parentheses, as in compressor=top_k(0.01)"),
    ("synchronous:*[1]", "synchronous: bucket_mb must be a number, got *[1]"),
    ("synchronous:**{}", "synchronous: bucket_mb must be a number, got **{}"),
    ("synchronous:" + "(" * 900, "cannot be read"),
    ("synchronous:bucket_mb=" + "-" * 900 + "1", "bucket_mb must be a number"),
    ("s" * 1001, "is no strategy"),
]


def test_a_wrong_component_is_an_error_of_one_sentence() -> None:
    for text, sentence in WRONG:
        with pytest.raises(ValueError) as error:
            parse(text)
        assert sentence in str(error.value), text
        assert "\n" not in str(error.value), text


def test_typed_settings_are_never_executed_as_code(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for code in ("open('file', 'w')", "__import__('os').mkdir('file')", "(lambda: open('file', 'w'))()"):
        for text in (f"synchronous:bucket_mb={code}", f"synchronous:compressor={code}", f"serial:shards=[{code}]"):
            with pytest.raises(ValueError):
                parse(text)
    assert list(tmp_path.iterdir()) == []


def test_settings_of_the_optimizer_can_be_typed_with_every_strategy() -> None:
    assert strategies.parse("synchronous:lr=0.5,algorithm=ring") == (
        parallel.Synchronous(algorithm="ring"),
        {"lr": 0.5},
    )
    assert strategies.parse("elastic_averaging:momentum=0.5")[1] == {}  # a setting of its own
    for text, sentence in (
        ("synchronous:lr=0.1,lr=0.2", "synchronous: lr is given twice"),
        ("local_sgd:lr=fast", "local_sgd: lr must be a number, got fast"),
        ("local_sgd:lr=0", "local_sgd:lr=0: lr must be above 0, got 0"),
        ("synchronous:compressor=sign(lr=1)", "sign has no settings, got 'lr'"),
        (
            "serial:learning_rate=1",
            "a setting of serial must be 'shards', 'micro_batches', 'lr' or 'momentum', got 'learning_rate'",
        ),
        ("serial:lrr=1", "did you mean 'lr'?"),
    ):
        with pytest.raises(ValueError) as error:
            strategies.parse(text)
        assert sentence in str(error.value)


def test_a_reserved_word_of_python_is_a_word_like_any_other() -> None:
    names = "all_reduce must be 'gather', 'recursive_doubling' or 'split', got 'global'"
    for text, sentence in (
        ("elastic_averaging:variant=async,period=2", "or 'asynchronous', got 'async'"),
        ("synchronous:compressor=top_k(0.1,all_reduce=global)", names),
    ):
        with pytest.raises(ValueError, match=re.escape(sentence)):
            parse(text)


@dataclass(frozen=True)
class Example:
    """An example. With a second sentence.

    And more.
    """

    kind: Literal["solo", "all"]
    sizes: tuple[int, ...] = (1, 2)
    pair: tuple[int, float] = (1, 0.5)
    function: Callable[[int], int] | None = None
    ratio: float | None = None


class WithInit:
    def __init__(self, size: int = 3) -> None:
        self.size = size


def example(text: str) -> Example:
    result = components.build("example", components.parse("example", text), {"example": Example}, {})
    assert isinstance(result, Example)
    return result


def test_values_of_choices_and_tuples_are_checked() -> None:
    assert example("example:solo,sizes=(3,),pair=(1,-2.5),ratio=2") == Example("solo", (3,), (1, -2.5), None, 2)
    for text, sentence in (
        ("example:some", "kind must be solo or all, got some"),
        ("example:solo,sizes=(1,0.5)", "sizes must be a tuple (a whole number, ...), got (1,0.5)"),
        ("example:solo,pair=(1,2,3)", "pair must be a tuple (a whole number, a number), got (1,2,3)"),
        ("example:solo,function=abs", "function must be something that cannot be typed here or None, got abs"),
    ):
        with pytest.raises(ValueError) as error:
            example(text)
        assert sentence in str(error.value)


def test_a_description_is_the_first_sentence_and_defaults_are_as_they_are_typed() -> None:
    assert components.description(Example) == "An example."
    assert components.defaults(Example) == "kind, sizes=(1, 2), pair=(1, 0.5), function=None, ratio=None"
    package = types.ModuleType("package")
    vars(package).update(Example=Example, WithInit=WithInit, __all__=["Example", "WithInit"])
    known = components.classes(package, object)
    assert known == {"example": Example, "with_init": WithInit}
    assert components.build("example", components.parse("example", "with_init:5"), known, {}).size == 5
