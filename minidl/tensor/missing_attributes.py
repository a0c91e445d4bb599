"""Hints for attributes that Tensor does not have: what to type instead of PyTorch's, and frequent misspellings.

The hints are descriptors, one for each name. A single `__getattr__` would be shorter, but Python reads every attribute
of a class with `__getattr__` more slowly.
"""

from __future__ import annotations

from minidl.missing_names import Missing

INSTEAD = {  # PyTorch's names that have no counterpart of the same name
    "grad_fn": "a tensor that an operation made has is_leaf == False",
    "retain_grad": "grad(loss, x) gives the gradient of a tensor that is not a leaf",
    "register_hook": "leaves have register_post_accumulate_grad_hook(hook), called with the tensor",
    "data_ptr": "x.data is the array",
    "stride": "x.data.strides are the array's strides, in bytes",
    "type": "x.dtype is the type, x.to(dtype) converts",
    "nonzero": "np.nonzero(x.detach().numpy()) gives the positions",
    "ndimension": "x.ndim is the number of axes",
    "zero_grad": "x.grad = None removes the gradient",
    "nelement": "x.size is the number of elements",
    "scatter": "F.where(mask, a, b) chooses, x.scatter_add(dim, index, source) adds",
    "scatter_": "F.where(mask, a, b) chooses, x.scatter_add(dim, index, source) adds",
    "unbind": "iteration, `for row in x`, walks along the first axis",
    "is_cuda": "x.device is 'cpu' or 'cuda:0'",
    "is_floating_point": "x.dtype is numpy's type",
    "element_size": "x.dtype.itemsize",
    "nbytes": "x.data.nbytes",
    "detach_": "x = x.detach()",
    "ravel": "x.flatten()",
    "copy": "x.clone()",
    "fill": "x.fill_(value)",
    "t": "x.T is the matrix transposed",
    "dot": "x @ y is the inner product of two vectors",
    "mv": "x @ y multiplies a matrix and a vector",
    "addmm": "a + x @ y",
    "expand_as": "x.expand(y.shape)",
    "view_as": "x.view(y.shape)",
    "reshape_as": "x.reshape(y.shape)",
    "type_as": "x.to(y.dtype)",
    "masked_select": "x[mask]",
    "clamp_min": "x.clamp(min=...)",
    "clamp_max": "x.clamp(max=...)",
    "clamp_": "x = x.clamp(...)",
    "relu_": "x = x.relu()",
    "exp_": "x = x.exp()",
    "masked_fill_": "x = x.masked_fill(mask, value)",
    "index_add_": "x = x.index_add(dim, index, source)",
    "scatter_add_": "x = x.scatter_add(dim, index, source)",
    "normal_": "x.copy_(randn(x.shape)), or nn.init.normal_(x)",
    "uniform_": "x.copy_(rand(x.shape)), or nn.init.uniform_(x)",
    "round": "np.round(x.detach().numpy()) is the array of rounded numbers, round(x.item(), 2) one number",
    "floor": "x // 1",
    "ceil": "-(-x // 1)",
    "rsqrt": "x ** -0.5",
    "reciprocal": "1 / x",
    "isinf": "x.abs() == float('inf')",
    "isfinite": "x.abs() < float('inf')",
    "median": "np.median(x.detach().numpy()) is the number",
    "bincount": "np.bincount(x.numpy()) counts",
    "unique": "np.unique(x.numpy()) is the array of distinct numbers",
    "diag": "F.where(eye(n) > 0, x, 0.0) puts a vector on the diagonal, x[range(n), range(n)] reads it",
    "diagonal": "x[range(n), range(n)]",
    "trace": "x[range(n), range(n)].sum()",
    "tile": "x.repeat(...)",
    "repeat_interleave": "x[np.repeat(np.arange(len(x)), n)]",
    "lerp": "x + share * (y - x)",
    "narrow": "x[start : start + length], or x[:, start : start + length]",
    "select": "x[i], or x[:, i]",
    "swapaxes": "x.transpose(0, 1)",
    "movedim": "x.permute(...)",
    "unflatten": "x.reshape(...)",
    "is_contiguous": "x.data.flags.c_contiguous",
    "new_zeros": "zeros(2, 3, dtype=x.dtype)",
    "new_ones": "ones(2, 3, dtype=x.dtype)",
    "equal": "(x == y).all()",
    "allclose": "x.isclose(y).all()",
    "map": "x is an array, not a list: write an expression of x, such as x * 2",
    "append": "F.cat([x, y]) joins tensors",
}
MISSPELLED = {
    "backwards": "backward",
    "detatch": "detach",
    "grads": "grad",
    "items": "item",
    "require_grad": "requires_grad",
    "requires_gradient": "requires_grad",
    "reshap": "reshape",
    "shapes": "shape",
    "sofmax": "softmax",
    "squeez": "squeeze",
    "tranpose": "transpose",
    "transpos": "transpose",
    "types": "dtype",
    "unsqeeze": "unsqueeze",
    "unsqueez": "unsqueeze",
}


def add_hints(kind: type) -> None:
    """Set a hint for each missing attribute."""
    hints = {**INSTEAD, **{name: f"did you mean {meant!r}?" for name, meant in MISSPELLED.items()}}
    for name, hint in hints.items():
        setattr(kind, name, Missing(name, hint))
