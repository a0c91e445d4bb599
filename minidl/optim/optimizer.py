"""Optimizer, the base class of all update rules: groups of parameters, their state, and `step()`.

A rule is a subclass with three methods: `check_group` checks its options, `new_state` makes the state of one parameter,
`update` applies the rule to arrays. `state_dict.py` saves and loads the state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self

from minidl.arguments import real_number
from minidl.from_pytorch import unknown_option
from minidl.kernels import Array, array_module
from minidl.kernels.sixteen_bit import cast, is_floating_point, is_sixteen_bit
from minidl.optim.master_weights import FLOAT32, master_of
from minidl.optim.state_dict import EXTRA_KEYS, Group, load_state, save_state
from minidl.tensor import Tensor


class Due(NamedTuple):
    """A parameter that is to be updated, with the array that the rule updates: its own, or its float32 master."""

    parameter: Tensor
    data: Array
    gradient: Array
    state: dict[str, Any]
    group: Group

    def done(self) -> None:
        """The rule has updated the array: a master is rounded into its parameter."""
        if self.data is not self.parameter._data:
            self.parameter._data[...] = cast(self.data, self.parameter.dtype)
        self.parameter.increment_version()


class Optimizer(ABC):
    """Base class: a subclass's rule updates parameters in place from their gradients.

    Parameters
        params      Tensors, or groups such as {"params": [...], "lr": 0.01} with their own options
        defaults    options of the groups that do not set them

    Attributes
        param_groups    list of dicts with parameters and options; they may be changed between steps
        state           maps a parameter to what the rule stores for it
        updates         number of calls of `step` so far
        grad_scale      what 16-bit gradients are divided by before the rule gets them; `amp.GradScaler` sets it
        after_step      functions without arguments that `step` calls when it has updated everything

    A parameter that occurs twice in one group is updated once.
    For a parameter in 16 bits the rule updates a float32 master, in the parameter's state, which is then rounded into
    the parameter (`optim/master_weights.py`); the rule's other arrays and the gradient that it gets are float32, too.

    Raises
        TypeError     an item that is not a Tensor, an option that is not a number
        ValueError    no parameters, a parameter in two groups, an option out of range

    >>> class SignDescent(Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...     def update(self, data, gradient, state, group):
    ...         data -= group["lr"] * array_module(data).sign(gradient)
    >>> w = Tensor([1.0, -2.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> SignDescent([w], lr=0.5).step()
    >>> w.data
    array([ 0.5, -1.5], dtype=float32)
    """

    def __new__(cls, *args: Any, **options: Any) -> Self:
        if options:
            unknown_option(cls.__init__, cls.__name__, options)
        return super().__new__(cls)

    def __init__(self, params: Iterable[Tensor] | Iterable[Group], defaults: Group) -> None:
        if hasattr(params, "parameters"):
            raise TypeError(
                f"{type(self).__name__} updates parameters, not a {type(params).__name__}: give model.parameters()"
            )
        if isinstance(params, Mapping) and "params" not in params:
            raise TypeError(f"params is a {type(params).__name__} of {len(params)} keys: give model.parameters()")
        if callable(params):
            raise TypeError(f"params is a {type(params).__name__}, which was not called: give model.parameters()")
        if isinstance(params, (Tensor, Mapping, str)) or not isinstance(params, Iterable):
            raise TypeError(f"params is a list of tensors or of groups, not one {type(params).__name__}: put it in []")
        if isinstance(params, (set, frozenset)):
            raise TypeError("params is a set, whose order changes from run to run: give a list")
        given: list[Any] = list(params)
        if not given:
            raise ValueError(
                f"{type(self).__name__} got no parameters: pass model.parameters(), and a fresh one if an iterator "
                "was used up before"
            )
        self.defaults = dict(defaults)
        self.param_groups: list[Group] = []
        self.state: dict[Tensor, dict[str, Any]] = {}
        self.updates = 0  # calls of `step` so far
        self.grad_scale = 1.0
        self.after_step: list[Callable[[], None]] = []
        groups = given if any(isinstance(item, Mapping) for item in given) else [{"params": given}]
        for group in groups:
            self.add_param_group(group)

    # ---- the step ----

    def step(self, closure: None = None) -> None:
        """Update every parameter that has a gradient; the others keep their values and state.

        `closure` exists for PyTorch's signature only: anything but None is a TypeError.
        """
        if closure is not None:
            raise TypeError("step() takes no closure: call loss.backward() first, then step()")
        self.updates += 1
        self.update_each(self._due())
        for function in self.after_step:
            function()

    def update_each(self, due: Iterator[Due]) -> None:
        """Apply the rule to each of these parameters, one after the other."""
        for each in due:
            self.update(each.data, each.gradient, each.state, each.group)
            each.done()

    def _due(self) -> Iterator[Due]:
        for group in self.param_groups:
            for parameter in group["params"]:
                gradient = parameter.grad
                if gradient is None:
                    continue
                data = parameter._data  # only here: other parameters may be on other ranks
                if isinstance(gradient, Tensor):
                    raise TypeError("a parameter's .grad is an array, not a Tensor: assign the Tensor's .data")
                if gradient.shape != data.shape:
                    raise ValueError(f"a parameter of shape {data.shape} has a gradient of shape {gradient.shape}")
                state = self.state.get(parameter, {})
                if is_sixteen_bit(data.dtype):
                    gradient = cast(gradient, FLOAT32)
                    gradient /= self.grad_scale
                    data = master_of(data, state)
                if parameter not in self.state:
                    self.state[parameter] = state = state | self.new_state(data, group)
                yield Due(parameter, data, gradient, state, group)

    @abstractmethod
    def update(self, data: Array, gradient: Array, state: dict[str, Any], group: Group) -> None:
        """Apply the rule: change `data` and `state` in place; do not change `gradient`."""

    def new_state(self, data: Array, group: Group) -> dict[str, Any]:
        """Return the state of a parameter before its first update."""
        return {}

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set all gradients to None; with set_to_none=False fill them with zeros in place."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none:
                    parameter.grad = None
                elif parameter.grad is not None:
                    parameter.grad[...] = 0

    # ---- the groups ----

    def add_param_group(self, group: Group) -> None:
        """Add a group such as {"params": tensors, "lr": 0.01}; `defaults` supply the options that it does not set."""
        group = self._with_parameter_list(group)
        for key in group:
            if key != "params" and key not in self.defaults and key not in EXTRA_KEYS:
                raise ValueError(
                    f"{type(self).__name__} has no option {key!r}: a group may set {', '.join(self.defaults)}"
                )
        group = {**self.defaults, **group}
        self.check_group(group)
        self.param_groups.append(group)

    def check_group(self, group: Group) -> None:
        """Raise TypeError for an option that is not a number, ValueError for one out of range."""
        check_not_negative(group, "lr")

    def _with_parameter_list(self, group: Group) -> Group:
        """Return the group with its parameters as a list of distinct tensors; refuse those of other groups."""
        if not isinstance(group, Mapping):
            raise TypeError(f"params mixes groups (dicts) and {type(group).__name__}: give only one kind")
        if "params" not in group:
            raise ValueError(f"a parameter group needs the key 'params', this one has {sorted(group)}")
        params = group["params"]
        parameters = [params] if isinstance(params, Tensor) else list(params)
        taken = {parameter for other in self.param_groups for parameter in other["params"]}
        for parameter in parameters:
            if not isinstance(parameter, Tensor):
                raise TypeError(
                    f"an optimizer updates Tensors, such as model.parameters() gives, not {type(parameter).__name__}"
                )
            if not is_floating_point(parameter.dtype):
                raise TypeError(
                    f"a parameter of shape {parameter.shape} holds {parameter.dtype}, and an optimizer updates "
                    "floating-point numbers: convert it with .float()"
                )
            if parameter._node is not None:
                raise ValueError(
                    f"a tensor of shape {parameter.shape} is the result of an operation: an optimizer updates leaves, "
                    "such as parameters"
                )
            if parameter in taken:
                raise ValueError(f"a parameter of shape {parameter.shape} is in more than one group")
        return {**group, "params": list(dict.fromkeys(parameters))}

    # ---- saving ----

    def state_dict(self) -> dict[str, Any]:
        """Return copies of the state and the options in PyTorch's layout, as numpy arrays and numbers.

            {"state": {0: {"momentum_buffer": array}, ...}, "param_groups": [{"lr": 0.1, ..., "params": [0, 1]}]}

        Parameters are numbered in the order in which they were given. `step` is an array of shape (), as in PyTorch.
        That of a parameter in 16 bits has its float32 master, `master_param`, too.
        """
        return save_state(self)

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Load copies of the state and the options that `state_dict()` returned, here or in PyTorch.

        Convert PyTorch's tensors to arrays first. Options that choose an implementation (foreach, fused, ...) are
        ignored.

        Raises
            ValueError    the state of another optimizer or of other parameters, or one with an option that exists in
                          PyTorch only; nothing is changed
        """
        load_state(self, saved)

    def __repr__(self) -> str:
        lines = [
            f"  {len(group['params'])} parameters: "
            + ", ".join(f"{key}={value!r}" for key, value in group.items() if key != "params")
            for group in self.param_groups
        ]
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])


def zeros_like(data: Array) -> Array:
    """Return zeros of the shape and dtype of `data`, contiguous even if `data` is not."""
    return array_module(data).zeros(data.shape, dtype=data.dtype)


def check_not_negative(group: Group, *names: str) -> None:
    """Raise TypeError or ValueError unless each named option is a finite number of at least 0."""
    for name in names:
        real_number(name, group[name], at_least=0)


def check_betas(group: Group) -> None:
    """Raise TypeError or ValueError unless `betas` is two numbers, each at least 0 and below 1; make it a tuple."""
    betas = group["betas"]
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise ValueError(f"betas must be two numbers, such as (0.9, 0.999), got {betas!r}")
    for index, beta in enumerate(betas):
        real_number(f"betas[{index}]", beta, at_least=0, below=1)
    group["betas"] = tuple(betas)
