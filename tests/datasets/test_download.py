"""Remote files: checked, fetched from the first mirror that answers, never half a file."""

import hashlib
import io
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pooch
import pytest

from normbench.datasets import UserError, download
from normbench.datasets.download import RemoteFile, fetch

CONTENT = b"the whole file " * 10_000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves /whole, /other (wrong bytes), /cut (ends early), /silent, /stalled; or 404."""

    def do_GET(self):
        self.server.asked.append(self.path)
        kind = self.path.split("/")[1]
        if kind == "silent":
            time.sleep(2)
        begun = CONTENT[:1000]
        body = {"whole": CONTENT, "other": b"other", "cut": begun, "stalled": begun}.get(kind)
        self.send_response(404 if body is None else 200)
        length = len(CONTENT) if kind in ("cut", "stalled") else len(body or b"")
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body or b"")
        if kind == "stalled":
            time.sleep(2)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def remote(server, *kinds, folder=""):
    addresses = tuple(f"{server.url}/{kind}/file.bin" for kind in kinds)
    return RemoteFile("file.bin", SHA256, addresses, folder)


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_file_that_is_there_is_not_downloaded(server, tmp_path):
    (tmp_path / "file.bin").write_bytes(CONTENT)
    assert fetch(remote(server, "whole"), str(tmp_path)) == tmp_path / "file.bin"
    assert server.asked == []
    (tmp_path / "file.bin").write_bytes(CONTENT[:-1])  # a damaged one is replaced
    assert fetch(remote(server, "whole"), str(tmp_path)).read_bytes() == CONTENT


def test_a_missing_file_comes_from_the_first_mirror_that_has_it(server, tmp_path):
    kinds = ("none", "other", "cut", "whole", "whole")
    path = fetch(remote(server, *kinds, folder="sub"), str(tmp_path / "new"))
    assert path == tmp_path / "new" / "sub" / "file.bin"
    assert path.read_bytes() == CONTENT
    assert [asked.split("/")[1] for asked in server.asked] == ["none", "other", "cut", "whole"]
    assert files(tmp_path) == [path]


def test_no_mirror_is_told_in_one_line_and_leaves_no_file(server, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "CONNECT_AND_READ_SECONDS", (0.2, 0.2))
    kinds = ("none", "other", "cut", "silent", "stalled")
    with pytest.raises(UserError) as caught:
        fetch(remote(server, *kinds, folder="sub"), str(tmp_path))
    line = str(caught.value)
    addresses = [f"{server.url}/{kind}/file.bin: " for kind in kinds]
    for part in ("404", "hash", "timed out", SHA256, "put it at", "sub/file.bin", *addresses):
        assert part in line
    assert "\n" not in line
    assert files(tmp_path) == []


def test_an_interrupted_download_leaves_no_file(server, tmp_path, monkeypatch):
    def interrupted(self, url, output_file, pooch):
        with open(output_file, "wb") as file:
            file.write(CONTENT[:100])
        raise KeyboardInterrupt

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch(remote(server, "whole"), str(tmp_path))
    assert files(tmp_path) == []


@pytest.mark.parametrize("terminal", [True, False])
def test_on_a_terminal_a_progress_bar_names_the_file(server, tmp_path, monkeypatch, terminal):
    screen = io.StringIO()
    screen.isatty = lambda: terminal
    monkeypatch.setattr("sys.stderr", screen)
    fetch(remote(server, "whole"), str(tmp_path))
    assert ("file.bin" in screen.getvalue()) == terminal


@pytest.mark.parametrize("folder", [None, "", 3])
def test_a_data_folder_is_a_path(folder):
    with pytest.raises(UserError, match="data_dir="):
        fetch(RemoteFile("file.bin", SHA256, ()), folder)
