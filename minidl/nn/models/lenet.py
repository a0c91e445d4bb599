"""LeNet-5: the convolutional network that read cheques in the 1990s."""

from __future__ import annotations

from typing import Any

from minidl import functional as F
from minidl.arguments import one_of, whole_number
from minidl.nn import init
from minidl.nn.activation import Identity
from minidl.nn.convolution import Conv2d
from minidl.nn.linear import Linear
from minidl.nn.models.imagenet import check_image_size
from minidl.nn.module import Module
from minidl.nn.pooling import AvgPool2d
from minidl.nn.stages import Stage, run_stages
from minidl.tensor import Tensor

# The image's size -> padding of conv1, whether it is pooled, padding of conv2.
#   32: as in the paper. 28: MNIST, padded to the paper's 32; the sizes after conv1 are the same.
#   8:  the digits, which are 32x32 scans averaged over 4x4 pixels. They are thereby pooled twice already, so they are
#       pooled only once more; they have no border to lose, so they are padded. Test accuracy ends near 98 %; with two
#       poolings, near 96 %.
GEOMETRY = {8: (2, False, 2), 28: (2, True, 0), 32: (0, True, 0)}


class LeNet(Module):
    """LeNet-5: twice convolution, tanh and average pooling, then three linear layers. 61,706 parameters for 28x28.

    Parameters
        size           side of the images in pixels: 8, 28 or 32
        num_classes    number of classes
        in_channels    channels of the images

    Shapes: x (n, in_channels, size, size) -> (n, num_classes). The layers are conv1, conv2, fc1, fc2, fc3.
    Simplified as usual today: every map of conv2 reads all maps of conv1, pooling has no parameters, the output layer
    is linear. Weights are initialised by Glorot's later rule for tanh, which keeps the signal's size.

    References
        LeCun et al., Gradient-Based Learning Applied to Document Recognition (1998), section II.B.

    >>> sum(parameter.size for parameter in LeNet().parameters())
    61706
    """

    def __init__(self, size: int = 28, num_classes: int = 10, in_channels: int = 1) -> None:
        size = one_of("LeNet: size", whole_number("LeNet: size", size), GEOMETRY, hint="the images' side in pixels")
        self.image_size, self.in_channels = (size, size), in_channels
        padding1, pools_conv1, padding2 = GEOMETRY[size]
        self.conv1 = Conv2d(in_channels, 6, 5, padding=padding1)
        self.pool1 = AvgPool2d(2) if pools_conv1 else Identity()
        size = (size + 2 * padding1 - 4) // (2 if pools_conv1 else 1)
        self.conv2 = Conv2d(6, 16, 5, padding=padding2)
        self.pool2 = AvgPool2d(2)
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
        return run_stages(self.stages(), x)

    def stages(self) -> list[Stage]:
        return [
            Stage(self._maps1, self.conv1, self.pool1),
            Stage(self._maps2, self.conv2, self.pool2),
            Stage(lambda maps: F.tanh(self.fc1(maps.reshape(maps.shape[0], self.fc1.in_features))), self.fc1),
            Stage(lambda x: F.tanh(self.fc2(x)), self.fc2),
            Stage(self.fc3, self.fc3),
        ]

    def _maps1(self, x: Any) -> Tensor:
        check_image_size("LeNet", x, self.in_channels, self.image_size)
        return self.pool1(F.tanh(self.conv1(x)))

    def _maps2(self, x: Tensor) -> Tensor:
        return self.pool2(F.tanh(self.conv2(x)))
