"""Module: what its parts are called, how its state is saved and loaded, and what stays tied."""

import copy
import pickle

import cloudpickle
import numpy as np
import pytest

from minidl import nn
from tests.together import naming


class Tied(nn.Module):
    """Two layers that share a weight, and one layer under two names."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.again = self.first

    def forward(self, x):
        return self.again(self.second(self.first(x)))


class Everything(nn.Module):
    def __init__(self):
        self.child = nn.BatchNorm2d(2)
        self.register_buffer("counts", np.arange(3))
        self.scale = nn.Parameter([1.0, 2.0])
        self.absent = None
        self.note = "not a tensor"


def test_parameters_buffers_and_children_are_listed_in_their_order_and_each_once():
    module = Everything()
    parameters = ["scale", "child.weight", "child.bias"]
    buffers = ["counts", "child.running_mean", "child.running_var", "child.num_batches_tracked"]
    assert [name for name, _ in module.named_parameters()] == parameters
    assert [name for name, _ in module.named_buffers()] == buffers
    assert list(module.state_dict()) == ["scale", "counts", *parameters[1:], *buffers[1:]]
    assert (len(list(module.parameters())), len(list(module.buffers()))) == (3, 4)
    assert not any(buffer.requires_grad for buffer in module.buffers())
    tied = Tied()
    assert [name for name, _ in tied.named_modules()] == ["", "first", "second"]
    assert [name for name, _ in tied.named_children()] == ["first", "second"]
    assert list(tied.children()) == [tied.first, tied.second]
    assert list(tied.modules()) == [tied, tied.first, tied.second]


def test_a_tied_tensor_is_one_parameter_with_a_state_under_each_of_its_names():
    module = Tied()
    assert [name for name, _ in module.named_parameters()] == ["first.weight", "first.bias", "second.bias"]
    state = module.state_dict()
    assert list(state) == ["first.weight", "first.bias", "second.weight", "second.bias", "again.weight", "again.bias"]
    assert state["first.weight"] is state["second.weight"] is state["again.weight"]


def test_a_tied_weight_collects_the_gradients_of_all_its_uses():
    tied = Tied().double()
    apart = nn.Sequential(*(nn.Linear(4, 4).double() for _ in range(3)))
    for layer, source in zip(apart, (tied.first, tied.second, tied.first), strict=True):
        layer.load_state_dict(source.state_dict())
    x = np.random.default_rng(0).standard_normal((5, 4))
    tied(x).sum().backward()
    apart(x).sum().backward()
    np.testing.assert_allclose(tied.first.weight.grad, sum(layer.weight.grad for layer in apart), rtol=1e-12)


def test_loading_writes_in_place_so_that_views_of_the_same_memory_see_it():
    flat = np.zeros(6, np.float32)
    module = nn.Linear(2, 2)
    module.weight.data, module.bias.data = flat[:4].reshape(2, 2), flat[4:]
    module.load_state_dict({"weight": np.full((2, 2), 3.0), "bias": [4.0, 5.0]})
    np.testing.assert_array_equal(flat, [3, 3, 3, 3, 4, 5])
    assert module.weight.dtype == np.float32


def test_loading_what_was_saved_restores_every_number():
    source, target = Everything(), Everything()
    for tensor in (*source.parameters(), *source.buffers()):
        tensor.data = np.asarray(tensor.data + 7)
    assert target.load_state_dict(source.state_dict()) == ([], [])
    for name, array in source.state_dict().items():
        np.testing.assert_array_equal(target.state_dict()[name], array)
        assert target.state_dict()[name].dtype == array.dtype


def test_a_state_that_does_not_fit_is_refused_with_all_reasons_and_nothing_is_written():
    module = nn.Linear(3, 2)
    before = module.state_dict()
    module.weight.data += 0.5  # the state is a copy
    assert not np.array_equal(before["weight"], module.weight.data)
    before = module.state_dict()
    state = {"weight": np.zeros((3, 2)), "extra": np.zeros(1), 7: np.zeros(1)}
    with pytest.raises(ValueError) as refusal:
        module.load_state_dict(state)
    text = str(refusal.value)
    assert "missing: bias" in text
    assert "unexpected: extra, 7" in text
    assert "weight: has shape (3, 2), the model needs (2, 3)" in text
    with pytest.raises(ValueError, match="weight: a Tensor holds numbers"):
        module.load_state_dict({"bias": np.zeros(2), "weight": np.array([["a"] * 3] * 2)})
    for name, array in before.items():
        np.testing.assert_array_equal(module.state_dict()[name], array)


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "net.encoder."])
def test_names_behind_the_prefix_of_a_wrapper_are_refused_with_what_to_load(prefix: str):
    model, other = (nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)) for _ in range(2))
    state = {f"{prefix}{name}": array for name, array in model.state_dict().items()}
    with pytest.raises(ValueError, match="as a wrapper writes them: load ") as refusal:
        other.load_state_dict(state)
    other.load_state_dict(eval(str(refusal.value).partition(": load ")[2], {"state": state}))
    assert np.array_equal(other.state_dict()["0.weight"], model.state_dict()["0.weight"])
    del state[f"{prefix}0.bias"]
    with pytest.raises(ValueError, match=r"missing: 0\.weight, 0\.bias"):
        other.load_state_dict(state)


def test_not_strict_loads_what_is_there_and_returns_the_rest():
    module = nn.Linear(3, 2)
    missing, unexpected = module.load_state_dict({"bias": np.ones(2), "extra": np.zeros(1)}, strict=False)
    assert (missing, unexpected) == (["weight"], ["extra"])
    np.testing.assert_array_equal(module.bias.data, 1)
    with pytest.raises(ValueError, match="has shape"):
        module.load_state_dict({"bias": np.ones(3)}, strict=False)


def test_a_state_of_batch_norm_without_its_count_is_loaded_and_the_count_stays():
    state = {"weight": np.full(3, 0.7), "bias": np.full(3, -0.3), "running_mean": np.ones(3), "running_var": np.ones(3)}
    layer = nn.BatchNorm1d(3)
    layer(np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32))
    assert layer.load_state_dict(state) == ([], [])
    assert layer.num_batches_tracked.item() == 1
    np.testing.assert_array_equal(layer.weight.data, np.float32(0.7))


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), lambda m: pickle.loads(cloudpickle.dumps(m))],
    ids=["deepcopy", "pickle", "cloudpickle"],
)
def test_copies_compute_the_same_share_nothing_and_keep_their_ties(copied):
    model = Tied()
    model.first.eval()
    twin = copied(model)
    x = np.ones((1, 4), np.float32)
    np.testing.assert_array_equal(twin(x).data, model(x).data)
    assert twin.second.weight is twin.first.weight
    assert twin.again is twin.first
    assert isinstance(twin.first.weight, nn.Parameter)
    assert len(list(copied(nn.BatchNorm2d(3)).buffers())) == 3
    assert (twin.training, twin.first.training) == (True, False)
    twin.first.weight.data += 1
    assert not np.allclose(twin(x).data, model(x).data)


def test_train_and_eval_reach_every_module_below():
    model = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()))
    assert model.eval() is model
    assert not any(module.training for module in model.modules())
    assert all(module.training for module in model.train().modules())


def test_zero_grad_forgets_and_requires_grad_freezes():
    model = nn.Linear(2, 2)
    model(np.ones((1, 2), np.float32)).sum().backward()
    assert model.weight.grad is not None
    kept = model.weight.grad
    model.zero_grad(set_to_none=False)
    assert model.weight.grad is kept
    assert not kept.any()
    model.zero_grad()
    assert model.weight.grad is None
    assert not model.requires_grad_(False)(np.ones((1, 2), np.float32)).requires_grad
    assert model.requires_grad_().weight.requires_grad


def test_converting_keeps_the_tensors_their_ties_and_the_integers():
    model = nn.Sequential(nn.BatchNorm2d(2), Tied())
    weight = model[1].first.weight
    weight.grad = np.ones_like(weight.data)
    model.double()
    assert model[1].second.weight is weight
    assert weight.dtype == weight.grad.dtype == model[0].running_mean.dtype == np.float64
    assert model[0].num_batches_tracked.dtype == np.int64
    assert model.to("float32")[0].weight.dtype == np.float32
    assert model.to("cpu") is model
    assert (model.half()[0].weight.dtype, model.float()[0].weight.dtype) == (np.float16, np.float32)
    for dtype in ("float16", "bfloat16"):  # from float64, too
        model.double().to(dtype)
        assert (str(model[0].weight.dtype), model[0].running_var.dtype) == (dtype, np.float32)
    for other in ("int32", None):
        with pytest.raises(TypeError, match=f"floating-point type .* not to {other!r}"):
            model.to(other)


def test_a_parameter_cannot_be_lost_by_assigning_a_tensor():
    model = nn.Linear(2, 2)
    with pytest.raises(TypeError, match=r"Linear\.weight is a Parameter.*copy_"):
        model.weight = model.weight * 2
    with pytest.raises(TypeError, match="Buffer"):
        bn = nn.BatchNorm2d(2)
        bn.running_mean = np.zeros(2)
    model.bias = None
    assert list(model.state_dict()) == ["weight"]


def test_the_printed_tree_shows_names_sizes_and_runs_of_equal_modules():
    class Net(nn.Module):
        def __init__(self):
            self.body = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
            self.blocks = nn.ModuleList([nn.Tanh(), nn.Tanh(), nn.Flatten()])

    assert repr(Net()) == (
        "Net(\n"
        "  (body): Sequential(\n"
        "    (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "    (1): ReLU()\n"
        "  )\n"
        "  (blocks): ModuleList(\n"
        "    (0-1): 2 x Tanh()\n"
        "    (2): Flatten(start_dim=1, end_dim=-1)\n"
        "  )\n"
        ")"
    )


def test_a_sequential_is_indexed_sliced_and_iterated_and_its_slices_keep_the_names():
    relu = nn.ReLU()
    model = nn.Sequential(nn.Linear(2, 3), relu, nn.Linear(3, 3), relu)
    assert len(model) == 4  # a module used twice runs twice
    assert model[1] is model[-1] is relu
    assert next(iter(model)) is model[0]
    tail = model[2:]
    assert list(tail.state_dict()) == ["2.weight", "2.bias"]
    x = np.ones((1, 2), np.float32)
    np.testing.assert_array_equal(tail(model[:2](x)).data, model(x).data)
    with pytest.raises(IndexError):
        model[4]


def test_a_sequential_takes_names_and_refuses_what_is_no_module():
    model = nn.Sequential({"fc": nn.Linear(2, 3), "act": nn.Tanh()})
    assert list(model.state_dict()) == ["fc.weight", "fc.bias"]
    assert isinstance(model[1], nn.Tanh)
    with pytest.raises(TypeError, match="function"):
        nn.Sequential(nn.Linear(2, 3), lambda x: x)
    with pytest.raises(TypeError, match="int"):
        nn.ModuleList([3])


def test_a_module_list_registers_its_modules():
    blocks = nn.ModuleList(nn.Linear(2, 2) for _ in range(2)).append(nn.Linear(2, 1))
    assert len(blocks) == 3
    assert len(list(blocks.parameters())) == 6
    assert blocks[-1].out_features == 1
    assert [layer.out_features for layer in blocks] == [2, 2, 1]
    assert list(blocks[1:].state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_clipping_scales_all_gradients_by_one_factor_and_leaves_short_ones_alone():
    a, b, unused = (nn.Parameter(np.zeros(2)) for _ in range(3))
    a.grad, b.grad = np.array([3.0, 0.0]), np.array([0.0, 4.0])
    kept = a.grad
    assert nn.clip_grad_norm_([a, b, unused], 1.0) == pytest.approx(5.0)
    np.testing.assert_allclose(kept, [3 / (5 + 1e-6), 0], rtol=1e-12)
    np.testing.assert_allclose(b.grad, [0, 4 / (5 + 1e-6)], rtol=1e-12)
    short = np.array([0.3, 0.4])
    for limit in (1.0, float("inf")):
        a.grad = short.copy()
        assert nn.clip_grad_norm_(a, limit) == pytest.approx(0.5)
        np.testing.assert_array_equal(a.grad, short)
    assert nn.clip_grad_norm_([], 1.0) == 0.0
    with pytest.raises(ValueError, match="-1"):
        nn.clip_grad_norm_(a, -1)


def test_frequent_slips_are_told_what_to_type():
    for make, message in [
        (lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU), r"not the class ReLU: call it, ReLU\(\.\.\.\)"),
        (
            lambda: nn.Sequential([nn.Linear(2, 2), nn.ReLU()]),
            r"not a list: give its items one by one, Sequential\(\*mod",
        ),
        (lambda: nn.Linear(2, 2).load_state_dict("weights.npz"), r"such as state_dict\(\) or, .*, not a str"),
        (lambda: nn.clip_grad_norm_(nn.Linear(2, 2), 1.0), r"not of a Linear: give model.parameters\(\)"),
    ]:
        with naming(message), pytest.raises(TypeError, match=message):
            make()


def test_a_model_in_float16_computes_and_gives_gradients_in_float16():
    model, x = nn.Sequential(nn.Linear(4, 3), nn.GELU(), nn.LayerNorm(3)).half(), np.ones((2, 4), np.float16)
    out = model(x)
    out.sum().backward()
    assert out.dtype == np.float16
    assert {parameter.grad.dtype for parameter in model.parameters()} == {np.dtype(np.float16)}


def test_apply_calls_a_function_with_every_module_children_first():
    seen = []
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU()))
    assert model.apply(seen.append) is model
    assert seen == [model[0], model[1][0], model[1], model]


def test_modules_and_parameters_are_added_by_name():
    module = nn.Module()
    module.add_module("layer", nn.Linear(2, 3))
    module.register_parameter("scale", nn.Parameter([1.0]))
    module.register_parameter("absent", None)
    assert list(module.state_dict()) == ["scale", "layer.weight", "layer.bias"]
    assert module.absent is None


def test_a_model_is_not_moved_to_a_device_and_says_what_to_call_instead():
    layer = nn.Linear(2, 3)
    assert layer.cpu() is layer.to(device="cpu") is layer.to("cpu") is layer
    assert layer.to("float64", device="cpu").weight.dtype == np.float64
    for move in (
        lambda: layer.cuda(),
        lambda: layer.to("cuda:0"),
        lambda: layer.to("mps"),
        lambda: layer.to(device="cuda"),
    ):
        with pytest.raises(TypeError, match=r"not moved to a device.*kernels.use\('cupy'\) before the model is made"):
            move()


def test_the_padding_row_of_an_embedding_starts_as_zeros_and_stays_so():
    table = nn.Embedding(4, 2, padding_idx=-1)
    table(np.array([[0, 3, 3], [1, 3, 3]])).sum().backward()
    assert table.weight.data[3].tolist() == [0.0, 0.0]
    assert table.weight.grad.tolist() == [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    assert repr(table) == "Embedding(4, 2, padding_idx=3)"


def test_a_state_in_bfloat16_that_numpy_has_saved_is_loaded(tmp_path):
    saved, loaded = nn.Linear(3, 2).to("bfloat16"), nn.Linear(3, 2).to("bfloat16")
    np.savez(tmp_path / "model.npz", **saved.state_dict())
    loaded.load_state_dict(np.load(tmp_path / "model.npz"))
    assert np.array_equal(loaded.weight.numpy(), saved.weight.numpy())
