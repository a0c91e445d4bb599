"""Hints for functions of PyTorch that `functional` does not have: what takes their place."""

from __future__ import annotations

from minidl.tensor import missing_attributes

INSTEAD = {
    **missing_attributes.INSTEAD,
    "binary_cross_entropy": "type F.binary_cross_entropy_with_logits(scores, targets), without the sigmoid",
    "concat": "type F.cat([x, y], dim)",
    "concatenate": "type F.cat([x, y], dim)",
    "vstack": "type F.cat([x, y], 0)",
    "hstack": "type F.cat([x, y], 1)",
    "mm": "type x @ y",
    "bmm": "type x @ y",
    "baddbmm": "type a + x @ y",
    "leaky_relu": "type nn.LeakyReLU(0.01)(x)",
    "silu": "type nn.SiLU()(x), or x * F.sigmoid(x)",
    "swish": "type nn.SiLU()(x), or x * F.sigmoid(x)",
    "elu": "type F.where(x > 0, x, F.exp(F.minimum(x, 0.0)) - 1)",
    "relu6": "type x.clamp(0, 6)",
    "hardtanh": "type x.clamp(-1, 1)",
    "log1p": "type F.log(1 + x)",
    "expm1": "type F.exp(x) - 1",
    "log2": "type F.log(x) / np.log(2)",
    "log10": "type F.log(x) / np.log(10)",
    "tan": "type F.sin(x) / F.cos(x)",
    "normalize": "type x / x.norm(dim=1, keepdim=True)",
    "cosine_similarity": "type (x * y).sum(dim=1) / (x.norm(dim=1) * y.norm(dim=1))",
    "pairwise_distance": "type (x - y).norm(dim=1)",
    "cdist": "type (x[:, None] - y[None]).norm(dim=2)",
    "linalg": "x.norm(), x @ y and F.einsum are there, np.linalg for arrays",
    "interpolate": "x.reshape(n, c, h, 1, w, 1).expand(n, c, h, 2, w, 2).reshape(n, c, 2 * h, 2 * w) doubles images",
    "ones": "type minidl.ones",
    "zeros": "type minidl.zeros",
    "take_along_dim": "type x.gather(dim, index)",
    "numel": "type x.numel()",
    "is_tensor": "type isinstance(x, Tensor)",
}
