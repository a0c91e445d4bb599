"""The models learn: from real scans, from drawn letters, and from text."""

from functools import partial

import pytest
from threadpoolctl import threadpool_limits

from minidl import data, nn, optim
from minidl.parallel import Job, Serial, Synchronous, train

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

GPT = partial(nn.models.GPT, block_size=64, n_layer=2, n_head=4, n_embd=64)
SGD = partial(optim.SGD, lr=0.1, momentum=0.9)


def digits_job(model, **changes) -> Job:
    return Job(model=model, data=data.digits, optimizer=SGD, batch_size=32, **changes)


@pytest.mark.parametrize(
    ("model", "epochs"),
    [
        pytest.param(partial(nn.models.ResNet, 8, num_classes=10, in_channels=1), 5, id="ResNet"),
        pytest.param(partial(nn.models.LeNet, size=8), 10, id="LeNet", marks=pytest.mark.exhaustive),
    ],
)
def test_convolutional_networks_read_digits(model, epochs):
    with threadpool_limits(1):
        report = train(digits_job(model, epochs=epochs))
    assert report.accuracy > 0.95


def test_lenet_reads_letters_in_fonts_that_it_has_not_seen():
    letters = partial(data.glyphs, n_train=2080, n_test=520)
    job = Job(partial(nn.models.LeNet, num_classes=26), letters, SGD, batch_size=32, epochs=6)
    with threadpool_limits(1):
        assert train(job).accuracy > 0.8


@pytest.mark.parametrize(
    ("strategy", "nodes"),
    [
        pytest.param(Serial(), 1, id="one node", marks=pytest.mark.exhaustive),
        pytest.param(Synchronous(), 2, id="two nodes"),
    ],
)
def test_a_gpt_predicts_text_far_better_than_letter_frequencies_can(strategy, nodes):
    text = partial(data.stdlib_text, n_chars=200_000)
    splits = text()
    model = partial(GPT, vocab_size=len(splits.classes))
    job = Job(model, text, partial(optim.AdamW, lr=3e-3), batch_size=32, epochs=2)
    with threadpool_limits(2):
        report = train(job, strategy, nodes=nodes)
    entropy = data.unigram_entropy(splits.test.tokens)  # what a model that ignores the context reaches at best
    assert report.history[-1]["test_loss"] < entropy - 0.4
