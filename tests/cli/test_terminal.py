"""On a terminal a bar moves, nothing is wider than the terminal, and what remains is the same as elsewhere."""

import json
import os
import re
import signal
import struct
import subprocess
import sys

import pytest

from tests.cli.command import environment

pytestmark = pytest.mark.timeout(300)

fcntl = pytest.importorskip("fcntl", reason="pseudo-terminals are POSIX")
pty = pytest.importorskip("pty", reason="pseudo-terminals are POSIX")
termios = pytest.importorskip("termios", reason="pseudo-terminals are POSIX")

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_a_terminal(folder, *arguments, ctrl_c_at=None):
    """Everything that the command writes to a terminal of 80 columns, and its exit code.

    ctrl_c_at: text at whose first appearance Ctrl-C is typed.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
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
            if ctrl_c_at is not None and ctrl_c_at in written.decode(errors="ignore"):
                os.killpg(process.pid, signal.SIGINT)
                ctrl_c_at = None
    os.close(ours)
    return written.decode(), process.returncode


def test_on_a_terminal_train_shows_a_progress_bar_and_leaves_a_line_per_epoch_and_the_table(tmp_path):
    text, code = on_a_terminal(tmp_path, "train", "--model", "mlp", "--epochs", 8, "--nodes", 2, "--out", "out")
    assert code == 0, text
    lines = [line for line in re.split(r"[\r\n]+", CONTROL.sub("", text)) if line.strip()]
    bars = [line for line in lines if "━" in line]
    assert bars[0].startswith("starting the nodes")
    moving = [line for line in bars if re.match(r"  [1-8]/8 +\d\.\d{4} [━╸╺]{18} +[\d,]+   step \d+/23", line)]
    assert len(moving) > 5  # it is drawn anew below the line of each epoch
    assert any(line.rstrip().endswith(" s left") for line in moving)
    header = next(line for line in lines if "test loss" in line)
    assert moving[0].index("step") == header.index("a node's") + 1
    finished = [line for line in lines if re.match(r"  [1-8]/8 .*%  ", line) and "━" not in line]
    assert [line.split()[0] for line in finished] == [f"{epoch}/8" for epoch in range(1, 9)]
    assert any("test accuracy" in line for line in lines)
    assert lines[-1].startswith("In out: checkpoint.npz")
    assert max(map(len, lines[:-1])) <= 80  # the last one names the folder
    assert "…" not in text
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")  # the cursor is shown again


def test_ctrl_c_erases_the_bar_and_shows_the_cursor_again(tmp_path):
    words = ("train", "--model", "mlp", "--epochs", 100_000, "--nodes", 2, "--out", "out")
    text, code = on_a_terminal(tmp_path, *words, ctrl_c_at=" left")
    assert code == 130
    above, _, said = text.partition("Stopped")
    assert above.endswith("\x1b[1A\x1b[2K")
    assert said.endswith("To go on: minidl train --resume out\r\n")
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")


def test_json_on_a_terminal_comes_after_the_bar(tmp_path):
    text, code = on_a_terminal(tmp_path, "train", "--model", "mlp", "--epochs", 2, "--json", "--out", "out")
    assert code == 0, text
    assert "━" in text
    above, document = text[: text.index("{")], text[text.index("{") :]
    assert above.endswith("\x1b[1A\x1b[2K")
    assert json.loads(document)["folder"] == "out"


def test_on_a_terminal_simulate_counts_its_simulations(tmp_path):
    text, code = on_a_terminal(tmp_path, "simulate", "--nodes", "2,40", "--algorithm", "ring,tree", "--out", "out")
    assert code == 0, text
    lines = [line for line in re.split(r"[\r\n]+", CONTROL.sub("", text)) if line.strip()]
    bar = next(line for line in lines if line.startswith("simulating 1 of 4 "))
    assert bar.split()[-4:] == ["ring", "on", "2", "nodes"]
    assert any(line.startswith("drawing the pictures") for line in lines)
    assert "…" not in text
