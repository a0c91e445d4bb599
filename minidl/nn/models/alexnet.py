"""AlexNet: the network that won ImageNet 2012 and began the present wave."""

from __future__ import annotations

from typing import Any

from minidl.nn.activation import ReLU
from minidl.nn.container import Sequential
from minidl.nn.convolution import Conv2d
from minidl.nn.dropout import Dropout
from minidl.nn.linear import Linear
from minidl.nn.models.image import check_image_size
from minidl.nn.module import Module
from minidl.nn.pooling import MaxPool2d
from minidl.tensor import Tensor


class AlexNet(Module):
    """Five convolutions, three linear layers; 61,100,840 parameters, of which the linear layers hold 96 %.

    x: (n, 3, 224, 224) -> (n, num_classes). Layout and names are torchvision's (features, classifier).
    Sources: Krizhevsky, Sutskever and Hinton, ImageNet Classification with Deep Convolutional Neural Networks (NeurIPS
    2012); Krizhevsky, One weird trick for parallelizing convolutional neural networks (arXiv:1404.5997), whose version,
    not divided between two GPUs, this is.
    """

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5) -> None:
        self.features = Sequential(
            Conv2d(3, 64, 11, stride=4, padding=2),
            ReLU(),
            MaxPool2d(3, stride=2),  # 55 x 55 -> 27 x 27
            Conv2d(64, 192, 5, padding=2),
            ReLU(),
            MaxPool2d(3, stride=2),  # -> 13 x 13
            Conv2d(192, 384, 3, padding=1),
            ReLU(),
            Conv2d(384, 256, 3, padding=1),
            ReLU(),
            Conv2d(256, 256, 3, padding=1),
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

    def forward(self, x: Any) -> Tensor:
        check_image_size("AlexNet", x, 3, 224)
        x = self.features(x)
        return self.classifier(x.reshape(x.shape[0], 256 * 6 * 6))
