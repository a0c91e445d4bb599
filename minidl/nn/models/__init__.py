"""The networks of the course, with the layouts and names of their best-known implementations."""

from minidl.nn.models.gpt import GPT
from minidl.nn.models.imagenet import VGG16, AlexNet
from minidl.nn.models.lenet import LeNet
from minidl.nn.models.mlp import MLP
from minidl.nn.models.resnet import ResNet

__all__ = ["GPT", "MLP", "VGG16", "AlexNet", "LeNet", "ResNet"]
