"""The networks of the course, with the layouts and names of their best-known implementations."""

from minidl.nn.models.alexnet import AlexNet
from minidl.nn.models.gpt import GPT
from minidl.nn.models.lenet import LeNet
from minidl.nn.models.mlp import MLP
from minidl.nn.models.resnet import ResNet
from minidl.nn.models.vgg import VGG16

__all__ = ["GPT", "MLP", "VGG16", "AlexNet", "LeNet", "ResNet"]
