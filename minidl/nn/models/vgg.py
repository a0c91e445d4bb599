"""VGG-16: a deep network of small filters, with half a gigabyte of weights."""

from __future__ import annotations

from typing import Any

from minidl.nn import init
from minidl.nn.activation import ReLU
from minidl.nn.container import Sequential
from minidl.nn.convolution import Conv2d
from minidl.nn.dropout import Dropout
from minidl.nn.linear import Linear
from minidl.nn.models.image import features_then_classifier
from minidl.nn.module import Module
from minidl.nn.pooling import MaxPool2d
from minidl.nn.stages import Stage, run_stages
from minidl.tensor import Tensor

STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))  # 3x3 filters; pooling between


class VGG16(Module):
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

    def forward(self, x: Any) -> Tensor:
        return run_stages(self.stages(), x)

    def stages(self) -> list[Stage]:
        return features_then_classifier("VGG16", 224, self.features, self.classifier)
