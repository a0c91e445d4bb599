"""What hands type that know PyTorch and that is not here: the answer says what to type, and what it says is right."""

from __future__ import annotations

import pickle
import subprocess
import sys

import cloudpickle
import numpy as np
import pytest

import minidl
from minidl import Tensor, data, functional, nn, optim
from minidl import functional as F
from minidl.from_pytorch import OF_LAYERS
from tests.together import Mistake, assert_refused

LAYER = nn.Linear(4, 5)
X = np.ones((3, 4), np.float32)


def parameters() -> list[Tensor]:
    return list(LAYER.parameters())


def vjp_that_returns_a_tensor() -> Tensor:
    double = minidl.operation(lambda x: 2 * x)
    double.vjp(lambda g, out, x: Tensor(2 * g))
    return double(Tensor([1.0], requires_grad=True))


MISTAKES: list[Mistake] = [
    # names of modules
    (lambda: minidl.tensor([1, 2]), TypeError, r"type Tensor\(data\).*Tensor\(np\.array"),  # type: ignore[operator]
    (lambda: minidl.cat([X]), AttributeError, r"type functional\.cat"),
    (lambda: minidl.save(LAYER, "x"), AttributeError, r"np\.savez\('model\.npz', \*\*model\.state_dict\(\)\)"),
    (lambda: minidl.no_gard, AttributeError, "did you mean 'no_grad'"),
    (lambda: minidl.optm, AttributeError, "did you mean 'optim'"),
    (lambda: F.binary_cross_entropy(X, X), AttributeError, "binary_cross_entropy_with_logits"),
    (lambda: nn.functional, AttributeError, "from minidl import functional as F"),
    (lambda: optim.lr_scheduler, AttributeError, r"type optim\.StepLR"),
    # attributes
    (lambda: Tensor(X).t(), AttributeError, r"x\.T"),
    (lambda: LAYER.register_forward_hook(print), AttributeError, "your own Module"),
    # options
    (lambda: nn.ReLU(inplace=True), TypeError, "ReLU takes no arguments: leave it out, the result is always a new"),
    (lambda: nn.LSTM(4, 5, proj_size=2), TypeError, "no option 'proj_size': its arguments are input_size, hidden"),
    (lambda: optim.SGD(parameters(), learning_rate=0.1), TypeError, "no option 'learning_rate': it is called lr"),
    # values
    (lambda: Tensor(X).view(np.int32), TypeError, "each length must be a whole number, got .*int32"),  # type: ignore
    (lambda: F.flip(X, (0, 0)), ValueError, r"axes \(0, 0\) of a tensor of shape \(3, 4\) name one axis twice"),
    (lambda: F.cumsum(2.5, 7), IndexError, r"axis 7 of a tensor of shape \(\), whose axes are 0 to 0"),
    (lambda: F.einsum("i.j->ij", X), ValueError, "a letter names an axis, .* got 'i.j'"),
    (lambda: nn.CrossEntropyLoss(X, [0, 1, 2]), ValueError, r"not of shape \(3, 4\).*CrossEntropyLoss\(\)\(pred"),
    (lambda: vjp_that_returns_a_tensor().backward(), TypeError, "must return an array as the gradient.*not Tensor"),
    (lambda: optim.MultiStepLR(optim.SGD(parameters()), 5), TypeError, "a list of epochs"),  # type: ignore[arg-type]
]


def test_a_habit_from_pytorch_is_answered_with_what_to_type() -> None:
    assert_refused(MISTAKES)


def test_a_missing_name_is_missing_to_hasattr_and_import() -> None:
    for module in (minidl, functional, nn, nn.init, optim, data):
        assert not hasattr(module, "nothing_like_it")
        assert not hasattr(module, "__wrapped__")


def test_packages_are_imported_when_they_are_named() -> None:
    program = (
        "import sys, minidl\n"
        "packages = {'amp', 'cluster', 'compress', 'data', 'optim', 'parallel', 'plots'}\n"
        "assert packages <= set(dir(minidl))\n"
        "assert not {*(f'minidl.{name}' for name in packages - {'plots'}), 'numba', 'matplotlib'} & set(sys.modules)\n"
        "for name in packages:\n"
        "    assert getattr(minidl, name) is sys.modules[f'minidl.{name}']\n"
        "minidl.optim.SGD\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=250)


def test_hints_for_modules_are_about_methods_that_are_missing_and_not_in_dir() -> None:
    assert not any(hasattr(LAYER, name) or name in dir(LAYER) for name in OF_LAYERS)
    assert {"parameters", "apply", "weight"} <= set(dir(LAYER))


def test_what_a_hint_says_to_type_gives_what_was_looked_for() -> None:
    names = {"x": Tensor([[-1.5, 1.5], [0.0, 2.5]]), "n": 2, "np": np, "F": F, "eye": minidl.eye}
    for hint, value in (
        ("x // 1", [[-2.0, 1.0], [0.0, 2.0]]),
        ("-(-x // 1)", [[-1.0, 2.0], [0.0, 3.0]]),
        ("x.abs() < float('inf')", [[True, True], [True, True]]),
        ("x[range(n), range(n)]", [-1.5, 2.5]),
        ("F.where(eye(n) > 0, x[0], 0.0)", [[-1.5, 0.0], [0.0, 1.5]]),
        ("x[np.repeat(np.arange(len(x)), n)]", [[-1.5, 1.5], [-1.5, 1.5], [0.0, 2.5], [0.0, 2.5]]),
        ("F.where(x > 0, x, F.exp(F.minimum(x, 0.0)) - 1)", [[np.expm1(-1.5), 1.5], [0.0, 2.5]]),
        (
            "x.reshape(1, 1, 2, 1, 2, 1).expand(1, 1, 2, 2, 2, 2).reshape(1, 1, 4, 4)[0, 0]",
            [[-1.5, -1.5, 1.5, 1.5]] * 2 + [[0.0, 0.0, 2.5, 2.5]] * 2,
        ),
    ):
        np.testing.assert_allclose(eval(hint, names).numpy(), value, rtol=1e-6, err_msg=hint)


def test_an_own_class_keeps_the_errors_and_options_of_its_own() -> None:
    class Own(nn.Module):
        def __init__(self, size: int, **others: int) -> None:
            self.layer = nn.Linear(size, others["out"])

    class Bare(nn.Module):
        pass

    assert Own(3, out=2).layer.weight.shape == (2, 3)
    with pytest.raises(TypeError, match=r"Bare\(\) takes no arguments"):
        Bare(3)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        nn.Linear(3)  # type: ignore[call-arg]


def test_a_module_that_may_not_be_called_is_sent_to_other_processes_by_its_name() -> None:
    assert pickle.loads(cloudpickle.dumps(minidl.tensor)) is minidl.tensor


def test_modules_and_optimizers_are_pickled_as_before() -> None:
    layer = pickle.loads(pickle.dumps(nn.Sequential(nn.Linear(4, 5), nn.ReLU())))
    assert layer(X).shape == (3, 5)
    assert pickle.loads(pickle.dumps(optim.SGD(parameters(), lr=0.25))).param_groups[0]["lr"] == 0.25
