"""Where a processor may show writes in another order, barriers stand between data and the flags that announce them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from minidl.cluster.engines.processes import shared_fingerprints, shared_reduction
from minidl.cluster.engines.processes.shared_fingerprints import SharedFingerprints
from minidl.cluster.engines.processes.shared_page import Page, create_page
from minidl.cluster.engines.processes.slots import PUT, TAG

READ, ASLEEP = 8, 10


class Block:
    """Shared memory that writes down when it is written."""

    size = 3

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def __getitem__(self, part: Any) -> Block:
        return self

    def __setitem__(self, part: Any, numbers: Any) -> None:
        self.log.append("data written")


class Words(dict[int, int]):
    """Flags that write down when they are raised and looked at."""

    def __init__(self, log: list[str], owner: str) -> None:
        super().__init__({TAG: 0, PUT: 1, ASLEEP: 0, ASLEEP + 1: 0})
        self.log, self.owner = log, owner

    def __getitem__(self, word: int) -> int:
        if word == PUT:
            self.log.append(f"{self.owner} seen")
        return super().__getitem__(word)

    def __setitem__(self, word: int, value: int) -> None:
        self.log.append(f"{self.owner} {({PUT: 'raised', TAG: 'published'}).get(word, 'released')}")
        super().__setitem__(word, value)


def test_an_all_reduce_separates_data_from_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    mine, theirs = (
        SimpleNamespace(tag=5, words=Words(log, owner), blocks=lambda dtype: [Block(log)], read=READ, asleep=ASLEEP)
        for owner in ("mine", "theirs")
    )
    slots: Any = SimpleNamespace(take=lambda readers, tag: mine, find=lambda rank, tag: theirs)
    monkeypatch.setattr(shared_reduction, "IN_ORDER", False)
    monkeypatch.setattr(shared_reduction, "barrier", lambda: log.append("barrier"))
    monkeypatch.setitem(shared_reduction.REDUCE, "sum", lambda a, b, out: log.append("data read"))
    mailbox: Any = SimpleNamespace(rank=0, size=2)
    recorder: Any = SimpleNamespace(laid_out=id, reduced=id, exchanged=lambda messages, nbytes: None)
    shared_reduction.SharedReduction(mailbox, slots, ranks=(0, 1)).run(np.ones(3), "sum", 5, recorder)
    assert log == [
        *("data written", "barrier", "mine raised", "mine published", "barrier"),
        *("barrier", "theirs seen", "barrier", "data read", "barrier", "theirs released"),
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
