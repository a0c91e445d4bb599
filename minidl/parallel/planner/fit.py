"""fit: the two constants of a machine, its efficiency and half, from published step times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log

import numpy as np

from minidl.parallel.planner.machine import MACHINES, Machine
from minidl.parallel.planner.published import FITTED, Row, predicted

ROUNDS = 8
STEP = 1e-4
"""Relative change of a constant by which derivatives are taken."""


def fit(rows: Sequence[Row] = FITTED) -> Machine:
    """The A100 machine whose two constants make the squared logarithms of the rows' errors least.

    Gauss-Newton steps in the logarithms of both constants, from the same start each time: no random number is drawn.

    >>> machine = fit()
    >>> round(machine.efficiency, 4), round(machine.half, 1)
    (0.761, 129.8)
    """
    constants = np.log([0.7, 100.0])
    for _ in range(ROUNDS):
        errors = _errors(rows, constants)
        slopes = np.stack([(_errors(rows, constants + change) - errors) / STEP for change in STEP * np.eye(2)], axis=1)
        constants = constants - np.linalg.lstsq(slopes, errors)[0]
    return _machine(constants)


def _machine(constants: np.ndarray) -> Machine:
    efficiency, half = np.exp(constants)
    return replace(MACHINES["a100x8"], efficiency=float(efficiency), half=float(half))


def _errors(rows: Sequence[Row], constants: np.ndarray) -> np.ndarray:
    machine = _machine(constants)
    return np.array([log(predicted(row, machine) / row.seconds) for row in rows])
