"""ResNet: every block adds a correction to its input, so that a hundred layers can be trained.

For ImageNet, depths 18, 34, 50, 101 and 152; for small images, the depths 6n + 2 of the paper's CIFAR-10 section.
Wider blocks make it a WideResNet.
"""

from __future__ import annotations

from typing import Any

from minidl import functional as F
from minidl.arguments import whole_number
from minidl.nn import init
from minidl.nn.activation import Identity
from minidl.nn.container import Sequential
from minidl.nn.convolution import Conv2d
from minidl.nn.linear import Linear
from minidl.nn.models.imagenet import units
from minidl.nn.module import Module
from minidl.nn.normalization import BatchNorm2d
from minidl.nn.pooling import AdaptiveAvgPool2d, MaxPool2d
from minidl.nn.stages import Stage, run_stages
from minidl.tensor import Tensor


class BasicBlock(Module):
    """relu(x + f(x)), where f is two 3x3 convolutions, each with batch norm."""

    expansion = 1

    def __init__(self, in_channels: int, channels: int, stride: int = 1, width: int = 1) -> None:
        inner = channels * width
        self.conv1 = Conv2d(in_channels, inner, 3, stride, padding=1, bias=False)
        self.bn1 = BatchNorm2d(inner)
        self.conv2 = Conv2d(inner, channels, 3, padding=1, bias=False)
        self.bn2 = BatchNorm2d(channels)
        self.downsample = shortcut(in_channels, channels, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return F.relu(out + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(Module):
    """relu(x + f(x)), where f is a 1x1 convolution to fewer channels, a 3x3, and a 1x1 to four times as many.

    The 3x3 convolution has the stride, as in torchvision ("v1.5"); the paper gives it to the first 1x1.
    """

    expansion = 4

    def __init__(self, in_channels: int, channels: int, stride: int = 1, width: int = 1) -> None:
        inner, out_channels = channels * width, channels * self.expansion
        self.conv1 = Conv2d(in_channels, inner, 1, bias=False)
        self.bn1 = BatchNorm2d(inner)
        self.conv2 = Conv2d(inner, inner, 3, stride, padding=1, bias=False)
        self.bn2 = BatchNorm2d(inner)
        self.conv3 = Conv2d(inner, out_channels, 1, bias=False)
        self.bn3 = BatchNorm2d(out_channels)
        self.downsample = shortcut(in_channels, out_channels, stride)

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        out = F.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        return F.relu(out + (x if self.downsample is None else self.downsample(x)))


def shortcut(in_channels: int, out_channels: int, stride: int) -> Sequential | None:
    """Return the layers around a block: None if shapes agree, else a 1x1 convolution (the paper's option B)."""
    if stride == 1 and in_channels == out_channels:
        return None
    return Sequential(Conv2d(in_channels, out_channels, 1, stride, bias=False), BatchNorm2d(out_channels))


IMAGENET: dict[int, tuple[type[BasicBlock | Bottleneck], tuple[int, ...]]] = {  # blocks in each stage
    18: (BasicBlock, (2, 2, 2, 2)),
    34: (BasicBlock, (3, 4, 6, 3)),
    50: (Bottleneck, (3, 4, 6, 3)),
    101: (Bottleneck, (3, 4, 23, 3)),
    152: (Bottleneck, (3, 8, 36, 3)),
}


class ResNet(Module):
    """Residual network with `depth` layers that have weights.

    Parameters
        depth                 18, 34, 50, 101 or 152 for ImageNet, 6n + 2 (8, 14, 20, ...) for small images
        num_classes           number of classes; default 1000 for ImageNet, 10 for small images
        in_channels           channels of the images
        width                 factor on the channels inside each block; ResNet(50, width=2) is WideResNet-50-2
        zero_init_residual    initialise the last batch norm of each block to 0, so that every block starts as identity

    Shapes: x (n, in_channels, h, w) -> (n, num_classes).
    Depths for ImageNet are torchvision's: a 7x7 convolution and a pooling, which together divide the image's side by 4,
    then stages of 64, 128, 256, 512 channels. ResNet-50 has 25,557,032 parameters,
    WideResNet-50-2 68,883,240.
    Depths for small images, such as CIFAR's: a 3x3 convolution, then three stages of n blocks with 16, 32, 64 channels.
    ResNet-20 has 272,474 parameters; the paper's 0.27M counts shortcuts without parameters, 2,752 fewer.
    Names are torchvision's: conv1, bn1, layer1.0.conv1, ..., layer2.0.downsample.0, ..., fc.

    References
        He et al., Deep Residual Learning (arXiv:1512.03385), table 1 and section 4.2; Goyal et al. (arXiv:1706.02677),
        section 5.1 (zero_init_residual); Zagoruyko and Komodakis, Wide Residual Networks (arXiv:1605.07146): their
        networks for ImageNet have this width, those for small images widen the blocks' outputs, too.

    >>> ResNet(20)(Tensor([[[[0.0] * 32] * 32] * 3])).shape
    (1, 10)
    """

    def __init__(
        self,
        depth: int,
        num_classes: int | None = None,
        in_channels: int = 3,
        zero_init_residual: bool = False,
        width: int = 1,
    ) -> None:
        depth = whole_number("ResNet: depth", depth)
        width = whole_number("ResNet: width", width, at_least=1)
        self.for_imagenet = depth in IMAGENET
        if self.for_imagenet:
            block, blocks = IMAGENET[depth]
            self.conv1 = Conv2d(in_channels, 64, 7, stride=2, padding=3, bias=False)
        elif depth >= 8 and depth % 6 == 2:
            block, blocks = BasicBlock, (depth // 6,) * 3
            self.conv1 = Conv2d(in_channels, 16, 3, padding=1, bias=False)
        else:
            raise ValueError(
                f"ResNet: depth must be one of {', '.join(map(str, IMAGENET))} or 6n + 2 (8, 14, 20, ...), not {depth}"
            )
        self.maxpool = MaxPool2d(3, stride=2, padding=1) if self.for_imagenet else Identity()
        channels = self.conv1.out_channels
        self.bn1 = BatchNorm2d(channels)
        self.groups = [f"layer{i + 1}" for i in range(len(blocks))]
        features = channels
        for i, name in enumerate(self.groups):
            out = channels * 2**i
            stage = [block(features, out, stride=1 if i == 0 else 2, width=width)]
            features = out * block.expansion
            stage += [block(features, out, width=width) for _ in range(blocks[i] - 1)]
            setattr(self, name, Sequential(*stage))
        self.avgpool = AdaptiveAvgPool2d(1)
        self.fc = Linear(features, num_classes if num_classes is not None else 1000 if self.for_imagenet else 10)
        for module in self.modules():
            if isinstance(module, Conv2d):
                init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, (BasicBlock, Bottleneck)) and zero_init_residual:
                last = module.bn2 if isinstance(module, BasicBlock) else module.bn3
                assert last.weight is not None
                init.zeros_(last.weight)

    def forward(self, x: Any) -> Tensor:
        return run_stages(self.stages(), x)

    def stages(self) -> list[Stage]:
        blocks = [block for name in self.groups for block in units(getattr(self, name))]
        return [
            Stage(self._stem, self.conv1, self.bn1, self.maxpool),
            *[Stage(block, block) for block in blocks],
            Stage(lambda maps: self.fc(self.avgpool(maps).flatten(1)), self.avgpool, self.fc),
        ]

    def _stem(self, x: Any) -> Tensor:
        return self.maxpool(F.relu(self.bn1(self.conv1(x))))
