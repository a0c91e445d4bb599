"""Which arrays the compiled kernels take."""

import pickle

import numpy as np

from minidl.kernels import jit
from minidl.kernels.jit.eligible import eligible


def test_an_array_from_another_process_is_eligible():
    for dtype in ("float32", "float64"):
        here = np.ones(3, dtype)
        sent = pickle.loads(pickle.dumps(here))
        assert sent.dtype is not here.dtype  # equal, but another object: hence the test
        assert eligible(sent)
        assert eligible(here, sent)


def test_all_others_go_to_the_reference():
    x = np.ones((4, 4), np.float32)
    for other in (np.ones(3, np.float16), np.ones(3, np.int64), x[:, ::2], np.ones(0, np.float32), 1.0):
        assert not eligible(other)
        assert not eligible(x, other)
    assert not eligible(x, x.astype(np.float64))


def test_a_gradient_from_another_process_updates_in_the_compiled_loop(monkeypatch):
    monkeypatch.setattr("minidl.kernels.reference.sgd", None)
    p, g = np.ones(3, np.float32), pickle.loads(pickle.dumps(np.ones(3, np.float32)))
    jit.sgd(p, g, None, 0.25, 0.0, 0.0, 0.0, False)
    assert p.tolist() == [0.75] * 3
