"""building: a part of a model has the bits of the whole model, and nothing else takes memory."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
import weakref
from itertools import product

import numpy as np
import pytest

import minidl
from minidl import Tensor, cluster, nn, random
from minidl.nn import init
from minidl.nn.models import GPT, MLP, LeNet, ResNet
from tests.together import naming


class Padded(nn.Module):
    """What user code does in a constructor: arrays of its own, writes into `.data`, ties, a frozen weight."""

    def __init__(self):
        self.table = nn.Embedding(5, 3, padding_idx=1)
        self.drawn = nn.Parameter(random.generator().standard_normal((4, 3)).astype(np.float32))
        self.zeros = nn.Parameter(np.zeros((64, 65), np.float32))
        self.scaled = init.uniform_(nn.Parameter(np.empty((3, 3), np.float32)))
        self.scaled.data *= 0.5
        self.scaled.data[0, 1:] = np.arange(2)
        self.copied = nn.Parameter(np.empty(3), requires_grad=False).copy_([1.0, 2.0, 3.0])
        self.assigned = nn.Parameter([0.0])
        self.assigned.data = np.arange(6.0).reshape(2, 3)
        self.tied = self.drawn
        self.twins = nn.ModuleList([nn.Linear(3, 2)])
        self.twins.append(copy.deepcopy(self.twins[0]))
        init.ones_(self.twins[1].bias)


MODELS = {
    "MLP": lambda: MLP(8, 16, 4),
    "LeNet": LeNet,
    "ResNet": lambda: ResNet(8),
    "GPT": lambda: GPT(11, 8, n_layer=2, n_head=2, n_embd=8, dropout=0.1),
    "Linear": lambda: nn.Linear(3, 2),
    "Linear without bias": lambda: nn.Linear(3, 2, bias=False),
    "Conv2d": lambda: nn.Conv2d(4, 6, 3, groups=2),
    "Embedding": lambda: nn.Embedding(5, 3),
    "Embedding with padding": lambda: nn.Embedding(5, 3, padding_idx=-1),
    "MultiheadAttention": lambda: nn.MultiheadAttention(6, 2),
    "BatchNorm1d": lambda: nn.BatchNorm1d(3),
    "BatchNorm2d": lambda: nn.BatchNorm2d(3),
    "GroupNorm": lambda: nn.GroupNorm(2, 4),
    "LayerNorm": lambda: nn.LayerNorm((2, 3)),
    "LSTM": lambda: nn.LSTM(3, 4, num_layers=2, bidirectional=True),
    "LSTMCell": lambda: nn.LSTMCell(3, 4),
    "in float64": lambda: MLP(8, 16, 4).double(),
    "a slice": lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))[:2],
    "user code": Padded,
}


def plain(name):
    minidl.manual_seed(3)
    return MODELS[name](), random.generator().spawn(1)[0].random()


def part_of(name, part):
    minidl.manual_seed(3)
    with nn.building(part):
        model = MODELS[name]()
    return model, random.generator().spawn(1)[0].random()


def assert_same_bits(state, whole):
    for name, array in state.items():
        assert array.dtype == whole[name].dtype
        assert array.tobytes() == whole[name].tobytes(), name


def half(which):
    return lambda model: list(model.parameters())[which::2] + list(model.buffers())[which::2]


def test_the_whole_model_and_its_halves_have_the_plain_models_bits():
    for name in MODELS:
        with naming(name):
            whole, following = plain(name)
            state = whole.state_dict()
            built, after = part_of(name, lambda model: model)
            assert after == following
            assert list(built.state_dict()) == list(state)
            assert_same_bits(built.state_dict(), state)
            assert all(type(parameter) is nn.Parameter and parameter.held for parameter in built.parameters())
            assert all(type(buffer) is nn.Buffer for buffer in built.buffers())
            assert [p.requires_grad for p in built.parameters()] == [p.requires_grad for p in whole.parameters()]

            names = []
            for which in (0, 1):
                built, after = part_of(name, half(which))
                assert after == following
                assert_same_bits(built.state_dict(), state)
                held = [tensor.held for tensor in built.parameters()]
                assert held == [position % 2 == which for position in range(len(held))]
                names += built.state_dict()
                assert [p.shape for p in built.parameters()] == [p.shape for p in whole.parameters()]
            assert sorted(names) == sorted(state)


def test_a_part_consists_of_modules_stages_and_parameters():
    class Stage:
        def __init__(self, *modules):
            self.modules = modules

        def parameters(self):
            return (p for module in self.modules for p in module.parameters())

        def buffers(self):
            return (b for module in self.modules for b in module.buffers())

    for part in (
        lambda model: [Stage(model[0], model[1]), model[2].weight],
        lambda model: [model[:2], model[2].weight],
        lambda model: (p for p in [*model[:2].parameters(), *model[:2].buffers(), model[2].weight]),
    ):
        with nn.building(part):
            model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 2), nn.BatchNorm1d(2))
        assert list(model.state_dict()) == [
            *("0.weight", "0.bias", "1.weight", "1.bias"),
            *("1.running_mean", "1.running_var", "1.num_batches_tracked", "2.weight"),
        ]
        assert len(list(model.buffers())) == 6
    expected = "a part consists of modules, stages and parameters, not of a int"
    with pytest.raises(TypeError, match=expected), nn.building(lambda model: [1]):
        model = nn.Linear(2, 2)
    other = nn.Sequential(nn.Linear(2, 3))
    with pytest.raises(ValueError, match=r"a Parameter of shape \(3, 2\) that is none of the model's"):  # noqa: SIM117
        with nn.building(lambda model: other.stages()):
            model = nn.Sequential(nn.Linear(2, 3))


# ---- what is not held ----


@pytest.fixture
def first_half():
    minidl.manual_seed(3)
    with nn.building(lambda model: model[:2]):
        return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2), nn.BatchNorm1d(2))


FORWARD = {
    "Linear": lambda m: m(np.zeros((1, 3), np.float32)),
    "Conv2d": lambda m: m(np.zeros((1, 4, 3, 3), np.float32)),
    "Embedding": lambda m: m(np.zeros((1,), int)),
    "MultiheadAttention": lambda m: m(*(Tensor(np.zeros((2, 1, 6), np.float32)),) * 3),
    "BatchNorm1d": lambda m: m(Tensor(np.zeros((2, 3), np.float32))),
    "BatchNorm2d": lambda m: m(Tensor(np.zeros((2, 3, 1, 1), np.float32))),
    "GroupNorm": lambda m: m(Tensor(np.zeros((2, 4), np.float32))),
    "LayerNorm": lambda m: m(Tensor(np.zeros((2, 3), np.float32))),
    "LSTM": lambda m: m(np.zeros((2, 1, 3), np.float32)),
    "LSTMCell": lambda m: m(np.zeros((1, 3), np.float32)),
}


def test_a_forward_pass_of_a_layer_that_is_not_held_raises():
    for kernel, name in product(["numpy", "numba"], FORWARD):
        with naming(kernel, name), minidl.kernels.use(kernel):
            model, _ = part_of(name, lambda model: [])
            for mode in (True, False):
                with pytest.raises(RuntimeError, match=r"this rank does not hold (weight|running_mean|in_proj|bias)"):
                    FORWARD[name](model.train(mode))


def test_a_parameter_that_is_not_held_has_shape_and_type_but_no_values(first_half):
    weight = first_half[2].weight
    assert (weight.shape, weight.dtype, weight.size, weight.ndim, len(weight)) == ((2, 3), np.float32, 6, 2, 2)
    assert (weight.numel(), weight.dim(), weight.size(0)) == (6, 2, 2)
    assert weight.data.strides == (0, 0)
    memory = weight.data
    while memory.base is not None:
        memory = memory.base
    assert memory.nbytes == 4
    assert sum(p.size for p in first_half.parameters()) == 12 + 3 + 6 + 2 + 4
    assert isinstance(weight, nn.Parameter)
    assert isinstance(first_half[3].running_mean, nn.Buffer)
    assert not first_half[3].running_mean.held
    assert repr(weight) == "Parameter(not held, shape (2, 3), float32)"


def test_reading_or_writing_the_values_of_a_parameter_that_is_not_held_raises_with_its_name(first_half):
    for use in [
        lambda w: w + 1,
        lambda w: 1 * w,
        lambda w: w.sum(),
        lambda w: w[0],
        lambda w: w.numpy(),
        lambda w: w.tolist(),
        lambda w: w.copy_(0.0),
        lambda w: Tensor(w),
        lambda w: np.asarray(w.detach()),
        lambda w: w.data + 1,
        lambda w: w.data.sum(),
        lambda w: w.data.copy(),
        lambda w: w.data[0],
        lambda w: w.data.__setitem__(0, 1),
        lambda w: np.concatenate([w.data, w.data]),
        lambda w: np.add(w.data.astype(float), 1, out=np.zeros((2, 3))),
        lambda w: np.add(np.zeros((2, 3)), 1, out=w.data),
        lambda w: list(w.data),
        lambda w: setattr(w, "data", np.zeros(3)),
    ]:
        with pytest.raises(RuntimeError, match=r"this rank does not hold 2\.weight"):
            use(first_half[2].weight)


def test_a_part_is_converted_copied_and_pickled(first_half):
    for again in (copy.deepcopy(first_half), pickle.loads(pickle.dumps(first_half))):
        assert_same_bits(again.state_dict(), first_half.state_dict())
        assert [p.held for p in again.parameters()] == [p.held for p in first_half.parameters()]
        assert [b.held for b in again.buffers()] == [False] * 3
        with pytest.raises(RuntimeError, match=r"does not hold 2\.weight"):
            again(np.zeros((1, 4), np.float32))
    assert all(p.dtype == np.float64 for p in first_half.double().parameters())
    assert first_half[3].running_mean.dtype == np.float64


def test_a_part_loads_and_saves_what_it_holds(first_half):
    whole = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2), nn.BatchNorm1d(2)).state_dict()
    assert first_half.load_state_dict(whole) == ([], [])
    assert_same_bits(first_half.state_dict(), whole)
    first_half.load_state_dict(first_half.state_dict())
    with pytest.raises(ValueError, match=r"missing: 0\.bias"):
        first_half.load_state_dict({"0.weight": whole["0.weight"]})


def test_initialising_a_part_again_gives_the_bits_of_the_whole_model(first_half):
    whole = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2), nn.BatchNorm1d(2))
    for model in (whole, first_half):
        minidl.manual_seed(5)
        for parameter in reversed(list(model.parameters())):
            init.normal_(parameter)
    assert_same_bits(first_half.state_dict(), whole.state_dict())


# ---- inside the block ----


def test_reading_values_in_the_block_raises():
    for read in [
        lambda w: w.sum(),
        lambda w: w.data.mean(),
        lambda w: w.data * 2,
        lambda w: w.mul_(2),
        lambda w: w.data[0],
        lambda w: w.data.fill(1),
        lambda w: w.copy_(w),
        lambda w: w.data.__setitem__(0, w.data),
        lambda w: nn.Parameter(w),
        pickle.dumps,
    ]:
        expected = r"a Parameter of shape \(2, 3\) has no values inside nn.building"
        with pytest.raises(RuntimeError, match=expected), nn.building(lambda model: model):
            layer = nn.Linear(3, 2)
            read(layer.weight)
        assert nn.Linear(3, 2).weight.held


def test_a_uniform_array_that_the_program_keeps_cannot_be_changed_unnoticed():
    zeros = np.zeros((3, 2), np.float32)
    with nn.building(lambda model: model):
        model = nn.Linear(2, 3)
        model.extra = nn.Parameter(zeros)
        with pytest.raises(ValueError, match="read-only"):
            zeros[0] = 1
    assert np.shares_memory(model.extra.data, zeros)
    zeros[0] = 1
    assert model.extra.data[0, 0] == 1
    ones = np.ones(3)
    with nn.building(lambda model: []):
        model = nn.Linear(2, 3)
        model.extra = nn.Parameter(ones)
    ones[0] = 2


def test_a_class_derived_from_parameter_stays_what_it_is():
    class Masked(nn.Parameter):
        def __init__(self, data, mask):
            super().__init__(data)
            self.mask = mask

    with nn.building(lambda model: model.kept):
        model = nn.Module()
        model.kept, model.other = Masked(np.arange(3.0), 1), Masked(np.zeros(3), 2)
    assert (type(model.kept), model.kept.mask, model.kept.tolist()) == (Masked, 1, [0, 1, 2])
    assert isinstance(model.other, Masked)
    assert (model.other.held, model.other.mask) == (False, 2)


def test_an_array_that_an_init_call_replaces_is_released():
    array = np.arange(6, dtype=np.float32).reshape(3, 2).copy()
    reference = weakref.ref(array)
    with nn.building(lambda model: model):
        model = nn.Linear(2, 3)
        model.weight = init.ones_(nn.Parameter(array))
        del array
        assert reference() is None


def test_one_model_is_made_in_a_block():
    expected = "one model must be made in the block and kept, it has none"
    with pytest.raises(ValueError, match=expected), nn.building(lambda model: model):
        pass
    with pytest.raises(ValueError, match="it has Linear, ReLU"), nn.building(lambda model: model):
        models = nn.Linear(2, 2), nn.ReLU()
    with pytest.raises(RuntimeError, match="does not hold a parameter of shape"):
        models[0].weight.sum()
    with nn.building(lambda model: model):
        layer = nn.Linear(2, 2)
        with pytest.raises(RuntimeError, match="nested"), nn.building(lambda model: model):
            pass
    assert layer.weight.held


def test_a_module_that_is_copied_in_the_block_has_its_weights():
    whole = MLP(4, 3, 2)
    with nn.building(lambda model: model.layers[0]):
        part = copy.deepcopy(whole)
    assert [p.held for p in part.parameters()] == [True, True, False, False]
    assert_same_bits(part.state_dict(), whole.state_dict())


def test_weights_that_are_loaded_in_the_block_are_those_of_the_part():
    whole = MLP(4, 3, 2).state_dict()
    with nn.building(lambda model: model.layers[1]):
        model = MLP(4, 3, 2)
        model.load_state_dict(whole)
    assert_same_bits(model.state_dict(), whole)
    assert len(model.state_dict()) == 2
    with pytest.raises(RuntimeError, match="has no values inside"), nn.building(lambda model: model):
        model = MLP(4, 3, 2)
        model.state_dict()


def test_a_placeholder_is_cut_when_it_is_made():
    whole, _ = plain("GPT")
    shard = nn.Shard("tp", 1, 2, blocks=3)

    def part(model):
        weight = model.transformer.h[1].attn.c_attn.weight.cut(shard)
        assert weight.shape == (24, 8)
        return [weight, model.transformer.h[1].ln_1]

    model, _ = part_of("GPT", part)
    weight = model.transformer.h[1].attn.c_attn.weight
    assert weight.shard == shard
    assert np.array_equal(weight.data, shard.cut(whole.transformer.h[1].attn.c_attn.weight.data))
    assert weight.data.base is None


def test_simulated_ranks_build_their_own_parts():
    def program(comm):
        minidl.manual_seed(3)
        with nn.building(lambda model: model[2 * comm.rank : 2 * comm.rank + 2]):
            first = nn.Linear(4, 3)
            comm.barrier()
            model = nn.Sequential(first, nn.ReLU(), nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
            del first
        return model.state_dict()

    minidl.manual_seed(3)
    whole = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).state_dict()
    parts = cluster.launch(program, nodes=3, on="simulation").results
    assert [list(part) for part in parts] == [[f"{i}.weight", f"{i}.bias"] for i in (0, 2, 4)]
    for part in parts:
        assert_same_bits(part, whole)


# ---- memory ----


def test_no_more_is_alive_than_the_part_and_one_parameter():
    for make, part in [
        (lambda: MLP([300, 400, 400, 400, 10]), lambda model: model.layers[:2]),
        (lambda: MLP([300, 400, 400, 400, 10]).double(), lambda model: model.layers[2:]),
        (lambda: GPT(500, 64, n_layer=4, n_head=2, n_embd=128), lambda model: model.transformer.h[2]),
        (lambda: nn.Sequential(*(nn.MultiheadAttention(200, 2) for _ in range(3))), lambda model: model[1]),
        (lambda: nn.Sequential(*(nn.LSTM(100, 200) for _ in range(3))), lambda model: model[1]),
    ]:
        tracemalloc.start()
        try:
            with nn.building(part):
                model = make()
                before = tracemalloc.get_traced_memory()
            after = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        sizes = [parameter.data.nbytes for parameter in model.parameters()]
        held = sum(parameter.data.nbytes for parameter in model.parameters() if parameter.held)
        slack = 200_000  # modules, names, generators
        assert before[1] < slack
        assert after[0] < held + slack
        assert after[1] < held + max(sizes) + slack
        assert sum(sizes) > 1.5 * held > 3 * slack  # the test tells the part from the whole


@pytest.mark.parametrize("equal", [False, True])
def test_parameters_made_of_one_array_share_what_an_init_call_writes(equal):
    class Twins(nn.Module):
        def __init__(self):
            array = np.zeros(6, np.float32) if equal else np.arange(6, dtype=np.float32)
            self.first, self.second = nn.Parameter(array), nn.Parameter(array)
            init.ones_(self.first)
            self.third = nn.Parameter(array)

    plain = Twins()
    with nn.building(lambda model: model):
        model = Twins()
    for name, parameter in plain.named_parameters():
        np.testing.assert_array_equal(dict(model.named_parameters())[name].data, parameter.data)
    assert np.shares_memory(model.first.data, model.third.data)
    with nn.building(lambda model: model.second):
        part = Twins()
    np.testing.assert_array_equal(part.second.data, np.ones(6))
