"""The mailbox of a rank, two of them in one process: several threads, early messages, and what goes on the page."""

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from minidl.cluster.diagnosis.errors import CommTimeout, RankFailed
from minidl.cluster.engines.processes import mailbox
from minidl.cluster.engines.processes.frames import ABANDON
from minidl.cluster.engines.processes.mailbox import SocketMailbox
from minidl.cluster.engines.processes.shared_page import EPOCH, Page, create_page

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def page() -> Page:
    return Page(create_page(2), 2)


@pytest.fixture
def launcher() -> Iterator[tuple[socket.socket, socket.socket]]:
    ends = socket.socketpair()
    yield ends
    for end in ends:
        end.close()


@pytest.fixture
def two(page: Page, launcher: tuple[socket.socket, socket.socket]) -> tuple[SocketMailbox, SocketMailbox]:
    links = socket.socketpair()
    without_helpers: Any = type("Mailbox", (SocketMailbox,), {"_join": None, "_finished": None})

    def mailbox_of(rank: int) -> SocketMailbox:
        return without_helpers(
            rank,
            {1 - rank: links[rank]},
            control=launcher[1].fileno(),
            read_control=lambda: RankFailed("told by the launcher"),
            timeout=100.0,
            origin=0.0,
            page=page,
            lost={},
        )

    return mailbox_of(0), mailbox_of(1)


def receive(box: SocketMailbox, tag: int) -> Any:
    pending = box.post_receive(1 - box.rank, tag)
    box.wait(pending)
    return pending.payload


def in_threads(*works: Any) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    return threads


def test_each_of_several_threads_gets_its_own_message_in_whatever_order_they_come(
    two: tuple[SocketMailbox, SocketMailbox],
) -> None:
    here, there = two
    here._links.share()
    got: dict[int, Any] = {}
    threads = in_threads(*(lambda tag=tag: got.update({tag: receive(here, tag)}) for tag in range(5)))
    while len(here.waits) < 5:
        time.sleep(0.001)
    for tag in (3, 0, 4, 1, 2):
        there.post_send(f"for {tag}", 0, tag)
    for thread in threads:
        thread.join(60)
    assert got == {tag: f"for {tag}" for tag in range(5)}
    assert here.waits == {}


def test_a_thread_may_send_more_than_the_socket_takes_while_another_polls(
    two: tuple[SocketMailbox, SocketMailbox],
) -> None:
    here, there = two
    here._links.share()
    (waiting,) = in_threads(lambda: receive(here, 99))
    while not here.waits:
        time.sleep(0.001)
    here.timeout = 200.0
    time.sleep(2 * mailbox.SHORT_SECONDS)  # now it polls for long
    for tag in range(100):
        here.post_send(np.full(8000, tag, np.float64), 1, tag)  # 6.4 MB, eager: the thread that polls has to flush it
    assert [receive(there, tag)[0] for tag in range(100)] == list(range(100))
    there.post_send(None, 0, 99)
    waiting.join(60)
    assert not waiting.is_alive()


def test_an_abort_ends_the_waiting_of_every_thread(
    two: tuple[SocketMailbox, SocketMailbox], launcher: tuple[socket.socket, socket.socket]
) -> None:
    here, _ = two
    here._links.share()
    errors: list[str] = []

    def work(tag: int) -> None:
        try:
            receive(here, tag)
        except RankFailed as error:
            errors.append(str(error))

    threads = in_threads(*(lambda tag=tag: work(tag) for tag in range(3)))
    while len(here.waits) < 3:
        time.sleep(0.001)
    launcher[0].send(b"!")
    for thread in threads:
        thread.join(60)
    assert errors == ["told by the launcher"] * 3
    with pytest.raises(RankFailed):
        here.post_send(None, 1, 0)  # and so does everything that follows


def test_when_the_thread_that_polls_fails_another_polls_on(two: tuple[SocketMailbox, SocketMailbox]) -> None:
    here, there = two
    here._links.share()
    here.timeout = 200.0
    errors: list[RankFailed] = []
    got: list[Any] = []

    def fail() -> None:
        try:
            receive(here, 1)
        except RankFailed as error:
            errors.append(error)

    (failing,) = in_threads(fail)
    while not here._links.is_polling:
        time.sleep(0.001)
    (waiting,) = in_threads(lambda: got.append(receive(here, 2)))
    time.sleep(2 * mailbox.SHORT_SECONDS)  # now it waits for long to be told
    there._links.send(0, ABANDON, 0.0, tag=1)
    failing.join(60)
    there.post_send("on time", 0, 2)
    waiting.join(60)
    assert len(errors) == 1
    assert got == ["on time"]


def test_only_a_wait_that_is_not_short_is_on_the_page(
    two: tuple[SocketMailbox, SocketMailbox], page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = two
    monkeypatch.setattr(mailbox, "SHORT_SECONDS", 4.9)
    here.timeout = 0.05
    with pytest.raises(CommTimeout):
        receive(here, 1)
    assert page.waits[0, EPOCH] == 0
    monkeypatch.setattr(mailbox, "SHORT_SECONDS", 0.01)
    here.timeout = 100.0

    def send_once_published() -> None:
        while page.waits[0, EPOCH] == 0:
            time.sleep(0.001)
        there.post_send("published", 0, 2)

    in_threads(send_once_published)
    assert receive(here, 2) == "published"


def test_a_rank_is_not_on_the_page_as_blocked_while_one_of_its_threads_is_about_to_raise_a_failure(
    two: tuple[SocketMailbox, SocketMailbox], page: Page
) -> None:
    here, _ = two
    program, helper = here.post_receive(1, 1), here.post_receive(1, 2)
    here._at_work[0] = 1
    here.waits = {here._program: (program, 0.0), 2: (helper, 0.0)}
    here._peers.abandoned[1, 2] = 1  # the helper has not seen it yet
    here._publish_if_blocked()
    assert page.waits[0, EPOCH] == 0
    del here._peers.abandoned[1, 2]
    here._publish_if_blocked()
    assert page.waits[0, EPOCH] == 1


def test_a_sleeper_is_woken_and_one_that_need_not_sleep_does_not(two: tuple[SocketMailbox, SocketMailbox]) -> None:
    here, there = two
    here.sleep(1, 7, lambda: True)
    woken = []
    (sleeping,) = in_threads(lambda: woken.append(here.sleep(1, 7, lambda: False)))
    while not here.waits:
        time.sleep(0.001)
    there.wake(0, 8)  # of another tag
    there.wake(0, 7)
    sleeping.join(60)
    assert woken == [None]
    there.wake(0, 7)  # nobody sleeps: nothing is left of it
    there.post_send("after", 0, 7)
    assert receive(here, 7) == "after"
