"""PowerSGD: exact on matrices of its rank, linear over nodes, warm from step to step."""

import numpy as np
import pytest

from minidl import cluster, nn
from minidl.compress import ErrorFeedback, PowerSGD
from minidl.compress.power_sgd import orthonormal
from minidl.parallel.gradients.compressed import CompressedGradients
from tests.together import naming

pytestmark = pytest.mark.timeout(300)


def of_rank(rank: int, rows: int = 20, columns: int = 12, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, rank)) @ rng.normal(size=(rank, columns))


def relative_error(compressor: PowerSGD, x: np.ndarray) -> float:
    return float(np.linalg.norm(compressor.decode(compressor.encode(x)) - x) / np.linalg.norm(x))


def test_a_matrix_of_no_higher_rank_comes_back_whole():
    for rank, true_rank in [(1, 1), (1, 2), (2, 1), (2, 3), (3, 3), (4, 3)]:
        with naming(rank, true_rank):
            compressor, x = PowerSGD(rank), of_rank(true_rank)
            relative_error(compressor, x)
            error = relative_error(compressor, x)
            assert error < 1e-12 if true_rank <= rank else error > 0.1


def test_it_is_exact_from_the_first_step_and_while_the_row_space_of_its_rank_stays_the_same():
    rows, other_rows = np.eye(12)[:2], np.eye(12)[2:4]  # two orthogonal row spaces
    column_spaces = [np.random.default_rng(seed).normal(size=(20, 2)) for seed in range(3)]
    compressor, cold = PowerSGD(2), PowerSGD(2, warm_start=False)
    assert max(relative_error(compressor, columns @ rows) for columns in column_spaces) < 1e-12
    assert relative_error(compressor, column_spaces[-1] @ other_rows) == 1  # the same column space, but all is left out
    assert max(relative_error(cold, columns @ each) for columns in column_spaces for each in (rows, other_rows)) < 1e-12


def test_warm_starts_come_to_the_best_approximation_of_the_rank():
    x = np.random.default_rng(1).normal(size=(30, 20))
    singular = np.linalg.svd(x, compute_uv=False)
    best = float(np.sqrt((singular[2:] ** 2).sum() / (singular**2).sum()))
    warm, cold = PowerSGD(2), PowerSGD(2, warm_start=False)
    warm_errors = [relative_error(warm, x) for _ in range(100)]
    assert warm_errors[0] > best * 1.02
    assert warm_errors[-1] == pytest.approx(best, rel=1e-3)
    assert min(relative_error(cold, x) for _ in range(100)) > best * 1.01
    assert warm.is_stateful
    assert not cold.is_stateful


def test_what_it_sends_is_thin():
    x = of_rank(5, 64, 32).astype("float32")
    assert PowerSGD(2).encode(x).nbytes == 4 * 2 * (64 + 32)
    assert PowerSGD(2).encode(x.reshape(64, 2, 4, 4)).nbytes == 4 * 2 * (64 + 32)
    assert PowerSGD(2).decode(PowerSGD(2).encode(x.reshape(64, 2, 4, 4))).shape == (64, 2, 4, 4)


def test_what_would_not_become_smaller_is_sent_as_it_is():
    for shape in [(0,), (), (7,), (1, 9), (3, 4), (0, 4), (5, 0)]:
        with naming(shape):
            x = np.random.default_rng(0).normal(size=shape).astype("float32")
            compressor = PowerSGD(2)
            message = compressor.encode(x)
            assert message.nbytes == x.nbytes
            assert (compressor.decode(message) == x).all()


def test_in_float16_the_factors_are_float32_and_lose_no_more_than_rounding():
    """In float16, Q in a warm start would become too large for its norm, and 1024 rows times epsilon are 1."""
    for scale, shape in [(1e-4, (64, 32)), (1.0, (2048, 16)), (2000.0, (64, 32))]:
        with naming(scale, shape):
            x = (scale * np.outer(np.linspace(0.5, 1, shape[0]), np.linspace(-1, 1, shape[1]))).astype("float16")
            compressor = PowerSGD(1)
            for _ in range(3):
                message = compressor.encode(x)
                assert message.nbytes == compressor.message_bytes(shape, x.dtype) == 4 * sum(shape)
                decoded = compressor.decode(message)
                assert decoded.dtype == x.dtype
                assert np.linalg.norm(decoded.astype(float) - x) < 2e-3 * np.linalg.norm(x.astype(float))


def test_sums_of_float16_matrices_and_vectors_are_float16():
    def program(comm):
        parameters = [nn.Parameter(np.zeros(shape, np.float16)) for shape in [(20, 12), (12,)]]
        gradients = CompressedGradients(parameters, comm, ErrorFeedback(PowerSGD(1)))
        for _ in range(3):
            for parameter in parameters:
                parameter.grad = np.full(parameter.shape, 100 + comm.rank, np.float16)
            gradients.finish()
        return [parameter.grad for parameter in parameters], [one.residual.dtype for one in gradients.compressors]

    for sums, residuals in cluster.launch(program, nodes=2, on="simulation").results:
        for total in sums:
            assert total.dtype == np.float16
            np.testing.assert_allclose(total, 201, rtol=1e-3)
        assert residuals == [np.float16] * 2


def test_after_a_gradient_of_zeros_it_finds_the_next_one():
    compressor = PowerSGD(2)
    assert relative_error(compressor, of_rank(2)) < 1e-12
    assert not compressor.decode(compressor.encode(np.zeros((20, 12)))).any()
    compressor.encode(of_rank(2, seed=5))
    assert relative_error(compressor, of_rank(2, seed=5)) < 1e-12


def nodes_reduce(comm, rank, arrays, steps=2):
    compressor = PowerSGD(rank)
    for _ in range(steps):
        waits = [compressor.begin_all_reduce(arrays[comm.rank], comm)]
        sums = [wait() for wait in waits]
    return sums[0], comm.bytes_sent


def test_nodes_get_the_same_bits_and_what_one_node_makes_of_the_sum():
    for p in (1, 2, 3, 5, 8):
        with naming(p):
            arrays = [of_rank(3, seed=s) for s in range(p)]
            run = cluster.launch(nodes_reduce, (2, arrays), nodes=p, on="simulation")
            first = run.results[0][0]
            assert all((result == first).all() for result, _ in run.results)
            alone, total = PowerSGD(2), sum(arrays)
            alone.encode(total)
            assert np.abs(first - alone.decode(alone.encode(total))).max() < 1e-9  # linear: adding loses nothing


def test_the_bytes_are_those_of_two_small_all_reduces():
    p, rank, rows, columns = 4, 2, 40, 20
    arrays = [np.ones((rows, columns)) for _ in range(p)]
    run = cluster.launch(nodes_reduce, (rank, arrays, 1), nodes=p, on="simulation", network=cluster.Network(0.0, 1e-9))
    assert run.results[0][1] == 2 * (p - 1) * 8 * rank * (rows + columns) // p


def test_gram_schmidt_gives_orthonormal_columns_even_of_nearly_equal_ones():
    rng = np.random.default_rng(0)
    nearly = rng.normal(size=(50, 1)) + 1e-5 * rng.normal(size=(50, 4))
    q = orthonormal(nearly)
    assert np.abs(q.T @ q - np.eye(4)).max() < 1e-12
    assert np.abs(q @ (q.T @ nearly) - nearly).max() < 1e-12  # the same space


def test_a_column_that_adds_nothing_becomes_zero():
    columns = np.array([[1.0, 2.0, 1.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    q = orthonormal(columns)
    assert not q[:, 1].any()
    assert np.abs(q.T @ q - np.diag([1, 0, 1])).max() < 1e-15


def test_impossible_settings_and_whole_numbers_are_refused():
    with pytest.raises(ValueError, match="PowerSGD: rank must be at least 1, got 0"):
        PowerSGD(0)
    with pytest.raises(TypeError, match=r"PowerSGD: rank must be a whole number of at least 1, got 1\.5"):
        PowerSGD(1.5)
    with pytest.raises(ValueError, match="PowerSGD: seed must be at least 0, got -1"):
        PowerSGD(1, seed=-1)
    whole = np.arange(20).reshape(4, 5)
    for use in (PowerSGD(1).encode, lambda array: next(PowerSGD(1).add_up(array, nodes=1, rank=0))):
        with pytest.raises(ValueError, match="PowerSGD compresses floating-point numbers, not int64"):
            use(whole)
