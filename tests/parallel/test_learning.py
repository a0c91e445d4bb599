"""The models learn: from real scans, from drawn letters, and from text."""

from functools import partial

import pytest
from threadpoolctl import threadpool_limits

from minidl import data, nn, optim
from minidl.parallel import Job, Synchronous, train

SGD = partial(optim.SGD, lr=0.1, momentum=0.9)
DIGITS = {"model": partial(nn.models.LeNet, size=8), "data": data.digits, "batch_size": 32}


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("changes", "accuracy"),
    [
        pytest.param({"epochs": 3}, 0.9, id="LeNet"),
        pytest.param(
            {"model": partial(nn.models.ResNet, 8, num_classes=10, in_channels=1), "epochs": 3},
            0.9,
            id="ResNet",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            {
                "model": partial(nn.models.LeNet, num_classes=26),
                "data": partial(data.glyphs, n_train=2080, n_test=520),
                "epochs": 6,
            },
            0.8,
            id="letters in fonts that it has not seen",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_convolutional_networks_read_digits_and_letters(changes, accuracy):
    """With any of two to four seeds the accuracy was 0.04 above the threshold at least; a guess has 0.1, or 0.04."""
    with threadpool_limits(1):
        report = train(Job(**(DIGITS | {"optimizer": SGD} | changes)), on="simulation")
    assert report.accuracy > accuracy


@pytest.mark.timeout(300)
def test_a_gpt_predicts_text_better_than_letter_frequencies_can():
    text = partial(data.stdlib_text, n_chars=40_000, block_size=32)
    splits = text()
    model = partial(nn.models.GPT, len(splits.classes), block_size=32, n_layer=1, n_head=2, n_embd=32)
    job = Job(model, text, partial(optim.AdamW, lr=1e-2), batch_size=32, epochs=4)
    with threadpool_limits(1):
        report = train(job, Synchronous(), 2, on="simulation")
    entropy = data.unigram_entropy(splits.test.tokens)  # what a model that ignores the context reaches at best
    assert report.history[-1]["test_loss"] < entropy - 0.2  # with each of three seeds it was 0.35 below at least
