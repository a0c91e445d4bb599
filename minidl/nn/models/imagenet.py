"""AlexNet, which won ImageNet 2012, and VGG-16, with small filters, twice as deep, and half a gigabyte of weights."""

from __future__ import annotations

from math import prod
from typing import Any

from minidl.arguments import one_of, whole_number
from minidl.nn import init
from minidl.nn.activation import ReLU
from minidl.nn.container import Sequential
from minidl.nn.convolution import Conv2d
from minidl.nn.dropout import Dropout
from minidl.nn.linear import Linear
from minidl.nn.module import Module
from minidl.nn.pooling import MaxPool2d
from minidl.nn.stages import Stage, run_stages
from minidl.tensor import Tensor


def check_image_size(model: str, x: Any, channels: int, size: tuple[int, int]) -> None:
    """Raise ValueError unless x has shape (n, channels, *size)."""
    if x.shape[1:] != (channels, *size) or x.ndim != 4:
        raise ValueError(f"{model}: images (n, {channels}, {size[0]}, {size[1]}) expected, got {x.shape}")


def units(module: Module) -> list[Module]:
    """The layers of a Sequential; another module, which a user may have put in its place, is one unit."""
    return list(module) if type(module) is Sequential and len(module) else [module]


class FeaturesThenClassifier(Module):
    """A network that reads images (n, 3, 224, 224): convolutions, then linear layers. Each layer is a stage.

    image_size   height and width of the images that this rank reads: tiles, where ranks divide the images
    """

    features: Sequential
    classifier: Sequential
    image_size = (224, 224)

    def forward(self, x: Any) -> Tensor:
        return run_stages(self.stages(), x)

    def stages(self) -> list[Stage]:
        first, *middle = units(self.features)
        head, *last = units(self.classifier)

        def checked(x: Any) -> Any:
            check_image_size(type(self).__name__, x, 3, self.image_size)
            return first(x)

        def flattened(maps: Any) -> Any:
            return head(maps.reshape(maps.shape[0], prod(maps.shape[1:])))

        return [
            Stage(checked, first),
            *[Stage(layer, layer) for layer in middle],
            Stage(flattened, head),
            *[Stage(layer, layer) for layer in last],
        ]


# ---- AlexNet ----

FILTERS = {1: (64, 192, 384, 256, 256), 2: (96, 256, 384, 384, 256)}  # per convolution, by the number of groups


class AlexNet(FeaturesThenClassifier):
    """AlexNet: five convolutions and three linear layers, which hold 96 % of the parameters.

    Shapes: x (n, 3, 224, 224) -> (n, num_classes). Layout and names are torchvision's (features, classifier).

    Parameters
        num_classes  number of classes; default ImageNet's 1000
        dropout      probability of dropping an input of the first two linear layers
        groups       1: one device, 64, 192, 384, 256, 256 filters; 61,100,840 parameters (the second source)
                     2: the network of 2012 on two GPUs; 96, 256, 384, 384, 256 filters; 60,965,224 parameters. Half of
                     the filters lie on each GPU; the second, fourth and fifth layer read only the channels of their
                     own GPU, the third reads both.

    The local response normalization of 2012, which has no parameters, is omitted. The padding of 2, which turns
    224 x 224 into 55 x 55, is not in the paper.

    References
        Krizhevsky, Sutskever, Hinton, ImageNet Classification with Deep Convolutional Neural Networks (NeurIPS 2012),
        section 3.5; Krizhevsky, One weird trick for parallelizing convolutional neural networks (arXiv:1404.5997)
    """

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5, groups: int = 1) -> None:
        groups = whole_number("AlexNet: groups", groups)
        first, second, third, fourth, fifth = FILTERS[one_of("AlexNet: groups", groups, FILTERS)]
        self.features = Sequential(
            Conv2d(3, first, 11, stride=4, padding=2),
            ReLU(),
            MaxPool2d(3, stride=2),  # 55 x 55 -> 27 x 27
            Conv2d(first, second, 5, padding=2, groups=groups),
            ReLU(),
            MaxPool2d(3, stride=2),  # -> 13 x 13
            Conv2d(second, third, 3, padding=1),
            ReLU(),
            Conv2d(third, fourth, 3, padding=1, groups=groups),
            ReLU(),
            Conv2d(fourth, fifth, 3, padding=1, groups=groups),
            ReLU(),
            MaxPool2d(3, stride=2),  # -> 6 x 6
        )
        self.classifier = Sequential(
            Dropout(dropout),
            Linear(256 * 6 * 6, 4096),
            ReLU(),
            Dropout(dropout),
            Linear(4096, 4096),
            ReLU(),
            Linear(4096, num_classes),
        )


# ---- VGG-16 ----

STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))  # 3x3 filters; pooling between


class VGG16(FeaturesThenClassifier):
    """VGG-16: thirteen 3x3 convolutions in five stages, three linear layers (configuration D); 138,357,544 parameters.

    Parameters
        num_classes  number of classes; default ImageNet's 1000
        dropout      probability of dropping an output of the first two linear layers

    Shapes: x (n, 3, 224, 224) -> (n, num_classes). Layout and names are torchvision's (features, classifier).

    References
        Simonyan and Zisserman, Very Deep Convolutional Networks (arXiv:1409.1556), table 1.
    """

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        layers: list[Module] = []
        channels = 3
        for stage in STAGES:
            for filters in stage:
                layers += [Conv2d(channels, filters, 3, padding=1), ReLU()]
                channels = filters
            layers.append(MaxPool2d(2))
        self.features = Sequential(*layers)  # 224 x 224 -> 7 x 7
        self.classifier = Sequential(
            Linear(512 * 7 * 7, 4096),
            ReLU(),
            Dropout(dropout),
            Linear(4096, 4096),
            ReLU(),
            Dropout(dropout),
            Linear(4096, num_classes),
        )
        for module in self.modules():
            if isinstance(module, Conv2d):
                init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, Linear):
                init.normal_(module.weight, 0.0, 0.01)
            if isinstance(module, (Conv2d, Linear)) and module.bias is not None:
                init.zeros_(module.bias)
