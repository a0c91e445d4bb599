"""What hands type that know PyTorch and that is not here: the answer says what to type, and what it says is right."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import cloudpickle
import numpy as np
import pytest

import minidl
from minidl import Tensor, amp, data, functional, nn, optim
from minidl import functional as F
from minidl.nn import module as nn_module

LAYER = nn.Linear(4, 5)
X = np.ones((3, 4), np.float32)


def parameters() -> list[Tensor]:
    return list(LAYER.parameters())


def vjp_that_returns_a_tensor() -> Tensor:
    double = minidl.operation(lambda x: 2 * x)
    double.vjp(lambda g, out, x: Tensor(2 * g))
    return double(Tensor([1.0], requires_grad=True))


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        # names of modules
        (lambda: minidl.tensor([1, 2]), TypeError, r"type Tensor\(data\).*Tensor\(np\.array"),  # type: ignore[operator]
        (lambda: minidl.from_numpy(X), AttributeError, r"type Tensor\(array\)"),
        (lambda: minidl.cat([X]), AttributeError, r"type functional\.cat"),
        (lambda: minidl.float32, AttributeError, r"type np\.float32"),
        (lambda: minidl.long, AttributeError, r"type np\.int64"),
        (lambda: minidl.device("cpu"), AttributeError, "leave it out"),
        (lambda: minidl.save(LAYER, "x"), AttributeError, r"np\.savez\('model\.npz', \*\*model\.state_dict\(\)\)"),
        (lambda: minidl.cuda.is_available(), AttributeError, r"kernels\.use\('cupy'\)"),
        (lambda: minidl.no_gard, AttributeError, "did you mean 'no_grad'"),
        (lambda: F.concat([X]), AttributeError, r"F\.cat"),
        (lambda: F.crossentropy(X, X), AttributeError, "did you mean 'cross_entropy'"),
        (lambda: F.binary_cross_entropy(X, X), AttributeError, "binary_cross_entropy_with_logits"),
        (lambda: F.nonzero(X), AttributeError, r"np\.nonzero"),
        (lambda: nn.functional, AttributeError, "from minidl import functional as F"),
        (lambda: nn.utils, AttributeError, r"nn\.clip_grad_norm_"),
        (lambda: nn.BCELoss(), AttributeError, r"nn\.BCEWithLogitsLoss\(\)"),
        (lambda: nn.GRU(3, 4), AttributeError, r"nn\.LSTM"),
        (lambda: nn.Relu(), AttributeError, "did you mean 'ReLU'"),
        (lambda: nn.init.xavier_uniform(LAYER.weight), AttributeError, "did you mean 'xavier_uniform_'"),
        (lambda: optim.lr_scheduler, AttributeError, r"type optim\.StepLR"),
        (lambda: optim.ExponentialLR, AttributeError, "step_size=1, gamma=gamma"),
        (lambda: data.TensorDataset(X, X), AttributeError, r"type data\.Dataset\(x, y\)"),
        # attributes
        (lambda: Tensor(X).t(), AttributeError, r"x\.T"),
        (lambda: Tensor(X).clamp_(0, 1), AttributeError, r"x = x\.clamp"),
        (lambda: LAYER.register_forward_hook(print), AttributeError, "your own Module"),
        # options
        (lambda: nn.ReLU(inplace=True), TypeError, "ReLU takes no arguments: leave it out, the result is always a new"),
        (lambda: nn.ReLU(True), TypeError, "ReLU takes no arguments"),
        (lambda: nn.Dropout(0.5, inplace=True), TypeError, "no option 'inplace': leave it out"),
        (lambda: nn.Linear(3, 4, device="cpu"), TypeError, "no option 'device': leave it out"),
        (lambda: nn.LSTM(4, 5, proj_size=2), TypeError, "no option 'proj_size': its arguments are input_size, hidden"),
        (lambda: nn.CrossEntropyLoss(size_average=False), TypeError, r"type reduction='mean', 'sum' or 'none'"),
        (lambda: optim.SGD(parameters(), learning_rate=0.1), TypeError, "no option 'learning_rate': it is called lr"),
        (lambda: optim.Adam(parameters(), amsgrad=True), TypeError, "no option 'amsgrad': leave it out"),
        (lambda: minidl.zeros(3, device="cpu"), TypeError, r"zeros\(\) has no option 'device': leave it out"),
        (lambda: Tensor([1], dtype="float64"), TypeError, r"no option 'dtype': .*x\.to\('float64'\)"),
        (
            lambda: nn.clip_grad_norm_(parameters(), 1.0, norm_type=1),
            TypeError,
            "no option 'norm_type': leave it out, the norm",
        ),
        (
            lambda: minidl.checkpoint(LAYER, X, use_reentrant=False),
            TypeError,
            "no option 'use_reentrant': leave it out",
        ),
        (lambda: nn.Parameter(X, device="cpu"), TypeError, "Parameter has no option 'device'"),
        # values
        (lambda: nn.CrossEntropyLoss(X, [0, 1, 2]), ValueError, r"not of shape \(3, 4\).*CrossEntropyLoss\(\)\(pred"),
        (lambda: vjp_that_returns_a_tensor().backward(), TypeError, "must return an array as the gradient.*not Tensor"),
        (lambda: minidl.operation(np.exp).vjp(3), TypeError, "is a function, not int"),  # type: ignore[arg-type]
        (lambda: data.DataLoader([(1, 2)], 1, sampler=[0]), TypeError, "is a DistributedSampler, not list: order="),  # type: ignore[arg-type]
        (lambda: data.DataLoader({"x": X}, 1), TypeError, r"a list of \(sample, target\) pairs, not a dict"),  # type: ignore[arg-type]
        (lambda: nn.GroupNorm(1, 4)(X.astype(np.float64)), TypeError, r"x is float64.*give x\.astype\(np\.float32\)"),
        (lambda: nn.ModuleList(LAYER), TypeError, r"not one Linear: put it in \[\]"),
        (lambda: F.layer_norm(X, [4]), TypeError, "normalized_shape is left out"),
        (lambda: F.roll(X, (1, 1), 0), ValueError, "one shift for each axis"),
        (lambda: minidl.randint(10, 3), TypeError, r"the shape is missing: type randint\(0, 10, \(2, 3\)\)"),
        (lambda: minidl.operation(3), TypeError, "a function on arrays is expected, not int"),  # type: ignore[arg-type]
        (lambda: optim.MultiStepLR(optim.SGD(parameters()), 5), TypeError, "a list of epochs"),  # type: ignore[arg-type]
        (lambda: optim.LambdaLR(optim.SGD(parameters()), 0.5), TypeError, "a function of the epoch"),  # type: ignore[arg-type]
        (lambda: optim.LambdaLR(LAYER, lambda epoch: 1.0), TypeError, "needs an Optimizer"),  # type: ignore[arg-type]
        (lambda: optim.SGD(parameters()).step(lambda: 1), TypeError, "takes no closure"),  # type: ignore[arg-type]
        (lambda: amp.GradScaler().unscale_(LAYER), TypeError, "an optimizer is expected here, not Linear"),  # type: ignore[arg-type]
        (lambda: nn.Embedding(5, 3, padding_idx=5), ValueError, "-5 <= padding_idx < 5, got 5"),
    ],
)
def test_a_habit_from_pytorch_is_answered_with_what_to_type(
    wrong: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        wrong()


@pytest.mark.parametrize("module", [minidl, functional, nn, nn.init, optim, data], ids=lambda module: module.__name__)
def test_a_missing_name_is_missing_to_hasattr_and_import(module: object) -> None:
    assert not hasattr(module, "nothing_like_it")
    assert not hasattr(module, "__wrapped__")


def test_hints_for_modules_are_about_methods_that_are_missing_and_not_in_dir() -> None:
    assert not any(hasattr(LAYER, name) or name in dir(LAYER) for name in nn_module.INSTEAD)
    assert {"parameters", "apply", "weight"} <= set(dir(LAYER))


def test_hints_for_functions_are_about_functions_that_are_missing() -> None:
    assert not set(functional.missing_functions.INSTEAD) & set(functional.__all__)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
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
    ],
)
def test_what_a_hint_says_to_type_gives_what_was_looked_for(hint: str, value: list[object]) -> None:
    names = {"x": Tensor([[-1.5, 1.5], [0.0, 2.5]]), "n": 2, "np": np, "F": F, "eye": minidl.eye}
    np.testing.assert_allclose(eval(hint, names).numpy(), value, rtol=1e-6)


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
