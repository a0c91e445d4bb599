"""LeNet-5: the first convolutional network that went to work, reading cheques."""

from __future__ import annotations

from typing import Any

from minidl import functional as F
from minidl.nn import init
from minidl.nn.convolution import Conv2d
from minidl.nn.linear import Linear
from minidl.nn.models.image import check_image_size
from minidl.nn.module import Module
from minidl.tensor import Tensor

# The image's size -> padding of conv1, whether it is pooled, padding of conv2.
#   32: as in the paper. 28: MNIST as it is, padded to the paper's 32; the sizes after conv1 are the same.
#   8:  the digits, which are 32x32 scans averaged over 4x4 pixels: pooled twice already, so they are pooled only once
#       more, and padded, since there is no border to cut off. Test accuracy ends near 98 %; pooled twice, near 96 %.
GEOMETRY = {8: (2, False, 2), 28: (2, True, 0), 32: (0, True, 0)}


class LeNet(Module):
    """Twice convolution, tanh and average pooling; then three linear layers. 61,706 parameters for 28x28.

    x: (n, in_channels, size, size), size 8, 28 or 32 -> (n, num_classes).
    Parameters: conv1, conv2, fc1, fc2, fc3. Errors: ValueError for another size.
    Source: LeCun et al., Gradient-Based Learning Applied to Document Recognition (1998), section II.B; simplified as
    everywhere today: every map of conv2 sees all maps before it, pooling has no parameters, the output layer is linear.
    Weights start by Glorot's rule for tanh, which came later: the signal keeps its size through five layers.

    >>> sum(parameter.size for parameter in LeNet().parameters())
    61706
    """

    def __init__(self, size: int = 28, num_classes: int = 10, in_channels: int = 1) -> None:
        if size not in GEOMETRY:
            raise ValueError(f"LeNet: the size of images must be one of {', '.join(map(str, GEOMETRY))}, not {size}")
        self.size, self.in_channels = size, in_channels
        padding1, self.pools_conv1, padding2 = GEOMETRY[size]
        self.conv1 = Conv2d(in_channels, 6, 5, padding=padding1)
        size = (size + 2 * padding1 - 4) // (2 if self.pools_conv1 else 1)
        self.conv2 = Conv2d(6, 16, 5, padding=padding2)
        size = (size + 2 * padding2 - 4) // 2
        self.fc1 = Linear(16 * size * size, 120)
        self.fc2 = Linear(120, 84)
        self.fc3 = Linear(84, num_classes)
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter, init.calculate_gain("tanh"))
            else:
                init.zeros_(parameter)

    def forward(self, x: Any) -> Tensor:
        check_image_size("LeNet", x, self.in_channels, self.size)
        x = F.tanh(self.conv1(x))
        if self.pools_conv1:
            x = F.avg_pool2d(x, 2)
        x = F.avg_pool2d(F.tanh(self.conv2(x)), 2)
        x = x.reshape(x.shape[0], self.fc1.in_features)
        x = F.tanh(self.fc1(x))
        x = F.tanh(self.fc2(x))
        return self.fc3(x)
