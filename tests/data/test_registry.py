"""Data sets by name."""

import subprocess
import sys

import pytest

from minidl import data


def test_every_name_is_a_function_of_the_package() -> None:
    assert data.NAMES == ("digits", "glyphs", "stdlib_text", "spirals", "mnist", "fashion_mnist", "cifar10")
    assert all(callable(getattr(data, name)) for name in data.NAMES)


def test_a_name_loads_its_data_with_its_options() -> None:
    train, test = data.load("spirals", n=50)
    assert (len(train), len(test)) == (40, 10)


def test_an_unknown_name_is_refused_with_the_nearest_one_and_all_choices() -> None:
    with pytest.raises(
        ValueError, match=r"name must be 'digits', 'glyphs', .* or 'cifar10', got 'digit': did you mean 'digits'\?"
    ):
        data.load("digit")
    with pytest.raises(ValueError, match=r"name must be .*, got .xyz.: a file of your own has an ending"):
        data.load("xyz")


@pytest.mark.timeout(300)
def test_importing_the_data_package_loads_none_of_the_heavy_libraries() -> None:
    heavy = {"matplotlib", "numba", "rich", "PIL", "urllib.request"}
    program = f"import sys, minidl.data; print(sorted({heavy!r} & set(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "[]"
