"""On a terminal a bar moves, nothing is wider than the terminal, and what remains is the same as elsewhere."""

import os
import re
import struct
import subprocess
import sys

import pytest

from tests.cli.command import SLOW, environment

fcntl = pytest.importorskip("fcntl", reason="pseudo-terminals are POSIX")
pty = pytest.importorskip("pty", reason="pseudo-terminals are POSIX")
termios = pytest.importorskip("termios", reason="pseudo-terminals are POSIX")

pytestmark = pytest.mark.timeout(300)

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_a_terminal(folder, *arguments, columns=80):
    """Everything that the command writes to a terminal that is `columns` wide, and its exit code."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-m", "minidl", *map(str, arguments)],
        cwd=folder,
        env=environment(TERM="xterm-256color"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        written = bytearray()
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux: no process has the terminal open any more
                break
            if not piece:
                break
            written += piece
    os.close(ours)
    return written.decode(), process.returncode


@pytest.fixture(scope="module")
def terminal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    text, code = on_a_terminal(folder, "train", *SLOW, "--epochs", 3, "--nodes", 2, "--out", "out")
    assert code == 0, text
    return text


def lines(text):
    """What was written, line by line, without colours and movements of the cursor."""
    return [line for line in re.split(r"[\r\n]+", CONTROL.sub("", text)) if line.strip()]


def test_a_bar_moves_beneath_the_columns(terminal):
    bars = [line for line in lines(terminal) if "━" in line]
    assert len(bars) > 5
    assert bars[0].startswith("starting the nodes")
    moving = [line for line in bars if re.match(r"  [123]/3 +\d\.\d{4} [━╸╺]{18} +[\d,]+   \d+% / \d+% / \d+%", line)]
    assert len(moving) > 5
    header = next(line for line in lines(terminal) if "test loss" in line)
    assert moving[0].index("%") < header.index("/communicate")


def test_no_line_is_wider_than_80_columns(terminal):
    assert max(map(len, lines(terminal)[:-1])) <= 80  # the last one names the folder
    assert "…" not in terminal


def test_what_remains_is_a_line_an_epoch_and_the_table(terminal):
    finished = [line for line in lines(terminal) if re.match(r"  [123]/3 .*%  ", line) and "━" not in line]
    assert [line.split()[0] for line in finished] == ["1/3", "2/3", "3/3"]
    assert any("test accuracy" in line for line in lines(terminal))
    assert lines(terminal)[-1].startswith("In out: checkpoint.npz")


def test_the_cursor_is_shown_again(terminal):
    assert terminal.rfind("\x1b[?25h") > terminal.rfind("\x1b[?25l")


def test_an_error_is_red_and_plain(tmp_path):
    text, code = on_a_terminal(tmp_path, "train", "--model", "resnte", columns=40)
    assert code == 2
    assert "\x1b[31m" in text
    assert CONTROL.sub("", text).strip() == (
        "minidl train: --model must be 'mlp', 'lenet', 'resnet', 'alexnet', 'vgg16' or 'gpt', got 'resnte': "
        "did you mean 'resnet'?"
    )
