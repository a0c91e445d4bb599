"""Downloads from a server on this machine, from a file, and from nowhere."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from minidl.data import DataError
from minidl.data.downloads import RemoteFile, download

CONTENTS = bytes(range(256)) * 1000
SHA256 = hashlib.sha256(CONTENTS).hexdigest()
NOWHERE = "http://127.0.0.1:9/good"  # the discard port: nobody listens

pytestmark = pytest.mark.timeout(300)


class Handler(BaseHTTPRequestHandler):
    requests: list[str]

    def do_GET(self) -> None:
        type(self).requests.append(self.path)
        if self.path == "/missing":
            self.send_error(404)
            return
        self.send_response(200)
        if self.path != "/without-length":
            length = "many" if self.path == "/wrong-length" else str(len(CONTENTS))
            self.send_header("Content-Length", length)
        self.end_headers()
        sent = {"/truncated": CONTENTS[:100_000], "/damaged": CONTENTS[::-1]}.get(self.path, CONTENTS)
        self.wfile.write(sent)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Handler.requests = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def remote(*urls: str) -> list[RemoteFile]:
    return [RemoteFile("file.bin", SHA256, urls)]


@pytest.mark.parametrize("page", ["good", "without-length"])
def test_a_file_is_downloaded_once_with_a_progress_bar(
    server: str, page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        [path] = download(remote(f"{server}/{page}"), tmp_path / "new" / "folder")
        assert path.read_bytes() == CONTENTS
    assert Handler.requests == [f"/{page}"]
    captured = capsys.readouterr()
    assert "downloading file.bin" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("truncated", "broke off after 100,000 of 256,000 bytes"),
        ("damaged", r"sent a file with a wrong checksum \(SHA-256\)"),
        ("missing", "HTTP Error 404"),
        ("wrong-length", "invalid literal for int"),
    ],
)
def test_a_bad_answer_leaves_no_file_and_says_what_to_put_where(
    server: str, page: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=rf"cannot download file\.bin .*{reason}.*put them into {tmp_path}: http://"):
        download(remote(f"{server}/{page}"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".download.lock"]


def test_the_next_address_is_tried_after_a_failure(server: str, tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(CONTENTS)
    addresses = (NOWHERE, f"{server}/damaged", f"{server}/truncated", (tmp_path / "source").as_uri(), f"{server}/good")
    [path] = download(remote(*addresses), tmp_path / "target")
    assert path.read_bytes() == CONTENTS
    assert Handler.requests == ["/damaged", "/truncated"]


def test_offline_one_sentence_lists_all_files_that_are_missing(tmp_path: Path) -> None:
    files = [RemoteFile(name, SHA256, (f"http://127.0.0.1:9/{name}",)) for name in ("a.gz", "b.gz", "c.gz")]
    (tmp_path / "b.gz").write_bytes(CONTENTS)
    with pytest.raises(DataError) as caught:
        download(files, tmp_path)
    message = str(caught.value)
    assert message.startswith("cannot download a.gz (http://127.0.0.1:9/a.gz: ")
    assert message.endswith(f"put them into {tmp_path}: http://127.0.0.1:9/a.gz, http://127.0.0.1:9/c.gz")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match=r"cannot write into .*file/folder .*choose another folder as root"):
        download(remote(NOWHERE), tmp_path / "file" / "folder")


def test_what_is_there_already_needs_neither_network_nor_permission(tmp_path: Path) -> None:
    (tmp_path / "file.bin").write_bytes(b"anything")
    assert download(remote(NOWHERE), tmp_path) == [tmp_path / "file.bin"]
    assert [path.name for path in tmp_path.iterdir()] == ["file.bin"]
