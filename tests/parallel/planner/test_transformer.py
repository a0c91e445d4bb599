"""A transformer's parameters, flops and activations against the model itself and published figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from minidl import nn
from minidl.parallel.planner import MACHINES, Arrangement, Transformer
from minidl.parallel.planner.published import ROWS
from minidl.parallel.planner.transformer import Product

IDEAL = replace(MACHINES["a100x8"], efficiency=1.0, half=0.0, memory_rate=1e30, inside=1e30, between=1e30)
IDEAL = replace(IDEAL, inside_latency=0.0, between_latency=0.0)


@pytest.mark.parametrize(
    ("layers", "width", "heads", "context", "vocabulary"), [(3, 35, 5, 17, 101), (1, 48, 3, 64, 7)]
)
def test_parameters_are_those_of_the_model(layers, width, heads, context, vocabulary):
    model = nn.models.GPT(vocabulary, context, layers, heads, width)
    planned = Transformer(layers, width, heads, context, vocabulary)
    assert planned.parameters == sum(parameter.size for parameter in model.parameters())


def test_parameters_of_the_published_models_are_those_of_their_names():
    for row in ROWS[:10]:
        assert row.model.parameters / 1e9 == pytest.approx(float(row.name[:-1]), abs=0.06)


def test_flops_are_narayanans_equation_without_the_recomputed_pass():
    gpt = Transformer(layers=7, width=330, heads=3, context=129, vocabulary=1003)
    batch, s, h, layers, vocabulary = 11, 129, 330, 7, 1003
    equation = 72 * batch * s * layers * h**2 * (1 + s / (6 * h) + vocabulary / (12 * layers * h))
    assert gpt.flops(batch) == pytest.approx(equation, rel=1e-12)


def test_model_utilisation_of_korthikantis_rows_is_the_published_one():
    utilisations = {}
    for row in ROWS:
        if row.source == "Korthikanti" and row.arrangement.recompute == "selective":
            flops = row.model.flops(row.arrangement.batch)
            utilisations[row.name] = 100 * flops / (row.seconds * row.arrangement.world * 312e12)
    published = {"22B select": 41.5, "175B select": 51.4, "530B select": 56.0, "1T select": 56.3}
    assert utilisations == pytest.approx(published, abs=0.2)


@pytest.mark.parametrize(
    ("layers", "width", "heads", "pp", "expected"),
    [
        (48, 6144, 64, 1, (66.84, 49.42, 16.18, 7.64)),
        (96, 12288, 96, 8, (62.04, 56.53, 18.49, 8.71)),
        (105, 20480, 128, 35, (58.31, 62.04, 20.27, 9.42)),
    ],
)
def test_shares_of_activations_are_korthikantis(layers, width, heads, pp, expected):
    gpt = Transformer(layers, width, heads, 2048, dropout=True, fused=False)

    def kept(recompute, *, sequence):
        arrangement = Arrangement(64, pp=pp, tp=8, recompute=recompute, sequence=sequence)
        return gpt.activations(arrangement)

    whole = kept("none", sequence=False)
    slices = kept("none", sequence=True) - 2 * gpt.message(Arrangement(64)) * 7 / 8  # there no input stays gathered
    parts = slices, kept("selective", sequence=False), kept("selective", sequence=True), kept("full", sequence=False)
    assert [100 * part / whole for part in parts] == pytest.approx(expected, abs=0.15)


@pytest.mark.parametrize("tp", [1, 2, 6])
@pytest.mark.parametrize(("experts", "top", "ep"), [(1, 1, 1), (4, 2, 2)])
def test_an_ideal_machine_needs_the_models_flops_at_its_peak(tp, experts, top, ep):
    gpt = Transformer(5, 132, 6, 77, 311, experts=experts, top=top, fused=False)
    arrangement = Arrangement(batch=6, dp=2, tp=tp, ep=ep, micro_batch=3)
    (passes,) = gpt.passes(arrangement, IDEAL)
    seconds = arrangement.micro_batches * passes.total * arrangement.world
    assert seconds * IDEAL.flops_per_s == pytest.approx(gpt.flops(6), rel=1e-9)


def test_a_product_takes_the_longer_of_computing_and_moving_its_factors():
    slow = replace(IDEAL, memory_rate=1e9)
    product = Product(3, 70, 50, times=4)
    moved = 2 * (3 * 70 + 70 * 50 + 3 * 50) * 4 / 0.8e9
    assert product.forward(slow) == product.input(slow) == product.weight(slow) == pytest.approx(moved)
    computed = pytest.approx(2 * 3 * 70 * 50 * 4 / IDEAL.flops_per_s)
    assert product.forward(IDEAL) == product._replace(moved=False).forward(slow) == computed


def test_full_recomputation_adds_the_forward_of_the_blocks_and_selective_that_of_attention():
    gpt = Transformer(4, 120, 6, 50, 99, fused=False)
    block = gpt.block(Arrangement(6, recompute="full"), IDEAL)
    assert block.again == block.forward
    core = gpt.block(Arrangement(6, recompute="selective"), IDEAL).again.total * IDEAL.flops_per_s
    assert core == pytest.approx(4 * 50 * 50 * 120)


def test_gathering_slices_again_costs_a_quarter_more_words():
    gpt = Transformer(4, 120, 6, 60, 99)
    slices = [Arrangement(6, tp=3, recompute=kind, sequence=True) for kind in ("none", "selective")]
    few, more = (gpt.traffic(each)["tp"] for each in slices)
    assert few == gpt.traffic(Arrangement(6, tp=3))["tp"] == pytest.approx(4 * 4 * 2 * (2 * 60 * 120) * 2 / 3)
    assert more == pytest.approx(1.25 * few)


@pytest.mark.parametrize(
    ("arrangement", "says"),
    [
        (Arrangement(8, pp=3), "4 layers cannot be divided equally over 3 chunks"),
        (Arrangement(8, tp=4), "6 heads cannot be divided equally over tp=4"),
        (Arrangement(8, tp=3, sequence=True), "divides 50 positions over tp=3"),
        (Arrangement(8, dp=2, ep=2), "1 experts cannot be divided"),
        (Arrangement(8, recompute="selective"), "fused=True keeps none"),
    ],
)
def test_sizes_that_do_not_divide_are_refused(arrangement, says):
    with pytest.raises(ValueError, match=says):
        Transformer(4, 120, 6, 50, 99).check(arrangement)


def test_sizes_that_are_none_are_refused():
    for sizes, says in (
        ({"width": 100}, "width=100 is no multiple of heads=6"),
        ({"layers": 0}, "layers must be at least 1"),
        ({"experts": 2, "top": 3}, "top must be"),
    ):
        with pytest.raises(ValueError, match=says):
            Transformer(**{"layers": 4, "width": 120, "heads": 6, "context": 50, **sizes})
