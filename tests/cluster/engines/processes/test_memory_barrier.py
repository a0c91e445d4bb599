"""Where a processor may show writes in another order, barriers stand between data and the flags that announce them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from minidl.cluster.engines.processes import shared_fingerprints, shared_reduction
from minidl.cluster.engines.processes.shared_fingerprints import SharedFingerprints
from minidl.cluster.engines.processes.shared_page import Page, create_page
from minidl.cluster.engines.processes.slots import TAG

READ, ASLEEP = 8, 10


class Block:
    """Shared memory that writes down when it is written."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def __getitem__(self, part: Any) -> Block:
        return self

    def __setitem__(self, part: Any, numbers: Any) -> None:
        self.log.append("data written")


class Words(dict[int, int]):
    """Flags that write down when they are raised and looked at."""

    def __init__(self, log: list[str], owner: str) -> None:
        super().__init__({TAG: 0, ASLEEP: 0, ASLEEP + 1: 0})
        self.log, self.owner = log, owner

    def __setitem__(self, word: int, value: int) -> None:
        self.log.append(f"{self.owner} {'published' if word == TAG else 'released'}")
        super().__setitem__(word, value)


def test_an_all_reduce_separates_data_from_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    mine, theirs = (
        SimpleNamespace(tag=5, words=Words(log, owner), blocks=lambda dtype: [Block(log)], read=READ, asleep=ASLEEP)
        for owner in ("mine", "theirs")
    )

    def find(rank: int, tag: int) -> Any:
        log.append("flag seen")
        return theirs

    monkeypatch.setattr(shared_reduction, "IN_ORDER", False)
    monkeypatch.setattr(shared_reduction, "barrier", lambda: log.append("barrier"))
    group: Any = shared_reduction.SharedReduction(
        SimpleNamespace(rank=0, size=2), SimpleNamespace(find=find), ranks=(0, 1)  # type: ignore[arg-type]
    )  # fmt: skip
    recorder = SimpleNamespace(laid_out=lambda nbytes: None, reduced=lambda nbytes: None)
    group._at_once(np.ones(3), lambda a, b, out: log.append("data read"), mine, recorder)
    assert log == [
        *("data written", "barrier", "mine published", "barrier"),
        *("flag seen", "barrier", "data read", "barrier", "theirs released"),
    ]


def test_a_fingerprint_is_whole_before_its_number_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    barriers: list[int] = []
    page = Page(create_page(2), 2)
    fingerprints = SharedFingerprints(page, 0)
    number = shared_fingerprints.NUMBER
    monkeypatch.setattr(shared_fingerprints, "IN_ORDER", False)
    monkeypatch.setattr(
        shared_fingerprints, "barrier", lambda: barriers.append(int((page.fingerprints[0, :, number] > 0).sum()))
    )
    site = shared_fingerprints.Site(1, "line 1")
    fingerprints.post(0, (0, 1), 0, shared_fingerprints.Fingerprint("barrier"), site)
    assert barriers == [0, 0, 1]  # before and after the text is written, and before the others are read
    del fingerprints
