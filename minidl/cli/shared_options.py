"""The options that several commands have, what the shell offers for their values, and how words are read."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from typer import BadParameter, Option
from typer.core import TyperCommand

from minidl.arguments import OTHER_NAMES, one_of
from minidl.plots.style import FORMATS


def offer(module: str, name: str, *, more: str = "") -> Callable[[str], list[str]]:
    """What the shell offers when Tab is pressed: the names in `name` of the module, and files that match `more`.

    The module is imported then: a command starts at once because its options import nothing.
    """

    def beginning_with(incomplete: str) -> list[str]:
        files = map(str, sorted(Path().glob(more))) if more else ()
        return [each for each in (*getattr(import_module(module), name), *files) if each.startswith(incomplete)]

    return beginning_with


ALGORITHMS = offer("minidl.cli.simulate.cases", "ALL_REDUCES")
NETWORKS = offer("minidl.cluster.cost.network", "PRESETS", more="*.json")
STRATEGIES = offer("minidl.cli.strategies", "STRATEGIES")

TOPOLOGY = (
    "racks:8x8@1us/1200Gbit@5us/100Gbit, torus:4x4x2@infiniband, fat_tree:8x8:1x4 or dragonfly:9x2x4x2, with the link "
    "after @, by default infiniband (minidl networks says what the numbers are)"
)

Model = Annotated[
    str,
    Option(
        help="mlp, lenet, resnet or gpt; alexnet or vgg16 for images of 224x224; or one of --import. With sizes: "
        "mlp:hidden=256, 'mlp:hidden=(256,128)', resnet:depth=20, gpt:layers=8,heads=8,width=256,context=128, also "
        "with experts=4, vocabulary=128 or recompute=selective.",
        autocompletion=offer("minidl.cli.models", "MODELS"),
    ),
]
Data = Annotated[
    str,
    Option(
        help="digits, glyphs, spirals, stdlib_text, mnist, fashion_mnist or cifar10, one of --import, or your own: "
        "NAME.npz, NAME.csv, NAME.txt, NAME.py or a folder of images.",
        autocompletion=offer("minidl.data", "NAMES"),
    ),
]
LearningRate = Annotated[float | None, Option(help="Learning rate; by default the model's (0.2 for mlp).")]
LearningRateDecay = Annotated[
    float | None, Option(help="Factor on the learning rate after every epoch; by default the model's.")
]
Seed = Annotated[int, Option(help="Seed of weights, shuffles, dropout, jitter and random choices.")]
Kernels = Annotated[
    str | None,
    Option(
        help="numpy, numba or cupy; by default $MINIDL_KERNELS, or numba.",
        autocompletion=offer("minidl.kernels", "NAMES"),
    ),
]
Import = Annotated[
    list[Path] | None,
    Option(
        "--import",
        metavar="FILE.py",
        help="A file with subclasses of parallel.Strategy, compress.Compressor or nn.Module, or functions -> "
        "data.Splits; class MyTopK is then named my_top_k. minidl compare --import FILE.py --list shows them. May be "
        "given several times.",
    ),
]
On = Annotated[
    str,
    Option(
        help="processes: each node is a process of this machine; simulation: on a virtual clock; mpi: each node is a "
        "rank of MPI, those that mpiexec or srun has started, or new ones on this machine.",
        autocompletion=offer("minidl.cli.engines", "ENGINES"),
    ),
]
Deadline = Annotated[
    float | None,
    Option(help="Real seconds after which a run ends with an error, also where a layer loops; by default no limit."),
]
Networks = Annotated[
    list[str] | None,
    Option(
        "--network",
        "--networks",
        help="1gbe, 10gbe (the default), 100gbe, infiniband, nvlink, a file like net.json, or a topology: "
        f"{TOPOLOGY}; repeatable.",
        autocompletion=NETWORKS,
    ),
]
Formats = Annotated[
    list[str] | None,
    Option("--format", help="Formats of the picture, several by commas: png (the default), svg, pdf."),
]
Out = Annotated[Path | None, Option(help="Folder for all files that are written; by default a new one in runs/.")]


def picture_formats(given: list[str] | None) -> tuple[str, ...]:
    """The formats that `--format` names. Raises ValueError for others."""
    return tuple(one_of("--format", name, FORMATS) for name in items("--format", given, "png"))


# ---- how a command reads its words ----


class Command(TyperCommand):
    """A command that answers an option by which others know one of its own with the name of that: --lr."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:  # typer does not export NoSuchOption
            typed = getattr(error, "option_name", None) or ""
            own = f"--{OTHER_NAMES.get(typed.strip('-').replace('-', '_'))}"
            if any(own in option.opts for option in self.params):
                vars(error)["possibilities"] = [own]
            raise


class SeveralWords(Command):
    """A command whose repeatable options take several words each; it must not have positional arguments."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        repeatable = {name for option in self.params if getattr(option, "multiple", False) for name in option.opts}
        return super().parse_args(ctx, spread(args, repeatable))


def spread(words: list[str], repeatable: set[str]) -> list[str]:
    """The words, with every repeatable option once before each of its values; BadParameter for one without values.

    >>> spread(["--networks", "1gbe", "10gbe", "--nodes", "8"], {"--networks"})
    ['--networks', '1gbe', '--networks', '10gbe', '--nodes', '8']
    """
    result: list[str] = []
    option, values = "", 0  # the repeatable option that is being read, and how many values it has so far
    for word in words:
        if word.startswith("-") and len(word) > 1:
            if option and not values and word.startswith("--"):
                raise BadParameter(f"Option '{option}' requires an argument.")
            option, values = (word if word in repeatable else ""), 0
            result.append(word)
        else:
            if option and values:
                result.append(option)
            result.append(word)
            values += 1
    return result


def items(option: str, given: list[str] | None, default: str) -> list[str]:
    """The values of a repeatable option, which commas separate too: each value once, in order.

    >>> items("--nodes", ["2,4", "8"], "16"), items("--nodes", None, "16,32")
    (['2', '4', '8'], ['16', '32'])
    """
    values = (value.strip() for text in given or [default] for value in text.split(","))
    found = list(dict.fromkeys(value for value in values if value))
    if given and not found:
        raise ValueError(f"{option} was given without a value")
    return found
