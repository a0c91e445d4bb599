"""LeNet-5: the first convolutional network that went to work, reading cheques."""

from __future__ import annotations

from typing import Any

from minidl import functional as F
from minidl.nn.convolution import Conv2d
from minidl.nn.linear import Linear
from minidl.nn.models.image import check_image_size
from minidl.nn.module import Module
from minidl.tensor import Tensor

# The image's size -> kernel size, padding of conv1, padding of conv2.
#   32: as in the paper. 28: MNIST as it is, padded by conv1 to the paper's 32; the sizes after it are the same.
#   8:  the digits. A 5x5 window would cover most of the image, so 3x3; padded, because 8 -> 4 -> 2 leaves nothing to
#       cut off, and fc1 still sees 16 x 2 x 2 numbers.
WINDOWS = {8: (3, 1, 1), 28: (5, 2, 0), 32: (5, 0, 0)}


class LeNet(Module):
    """Twice convolution, tanh and average pooling; then three linear layers. 61,706 parameters for 28x28.

    x: (n, in_channels, size, size), size 8, 28 or 32 -> (n, num_classes).
    Parameters: conv1, conv2, fc1, fc2, fc3. Errors: ValueError for another size.
    Source: LeCun et al., Gradient-Based Learning Applied to Document Recognition (1998), section II.B; simplified as
    everywhere today: every map of conv2 sees all maps before it, pooling has no parameters, the output layer is linear.

    >>> sum(parameter.size for parameter in LeNet().parameters())
    61706
    """

    def __init__(self, size: int = 28, num_classes: int = 10, in_channels: int = 1) -> None:
        if size not in WINDOWS:
            raise ValueError(f"LeNet: the size of the images must be one of {', '.join(map(str, WINDOWS))}, not {size}")
        self.size, self.in_channels = size, in_channels
        window, padding1, padding2 = WINDOWS[size]
        self.conv1 = Conv2d(in_channels, 6, window, padding=padding1)
        after1 = (size + 2 * padding1 - window + 1) // 2
        self.conv2 = Conv2d(6, 16, window, padding=padding2)
        after2 = (after1 + 2 * padding2 - window + 1) // 2
        self.fc1 = Linear(16 * after2 * after2, 120)
        self.fc2 = Linear(120, 84)
        self.fc3 = Linear(84, num_classes)

    def forward(self, x: Any) -> Tensor:
        check_image_size("LeNet", x, self.in_channels, self.size)
        x = F.avg_pool2d(F.tanh(self.conv1(x)), 2)
        x = F.avg_pool2d(F.tanh(self.conv2(x)), 2)
        x = x.reshape(x.shape[0], self.fc1.in_features)
        x = F.tanh(self.fc1(x))
        x = F.tanh(self.fc2(x))
        return self.fc3(x)
