"""MLflow's own server, in front of a database: started, killed, and started again.

Its imports take ten seconds of a processor, in the command and in the server that it starts. So a
process that has them forks into each server, which runs the command and then serves itself.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.servers.ports import HOST, answers, free_port

PATIENCE = 180.0  # seconds until it answers
QUIET = {
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
LOADED = [  # the first before MLflow's server, which asks whether it is loaded
    *("uvicorn.main", "mlflow.cli", "mlflow.server.fastapi_app"),
    *("sqlalchemy.dialects.postgresql.psycopg", "psycopg"),
]
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(LOADED)


@dataclass
class Server:
    """`mlflow server` for a database, with the artifacts in a folder that it alone knows."""

    database: str  # its URI, which may hold a password
    folder: Path
    workers: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)
    process: BaseProcess | None = None

    @property
    def uri(self) -> str:
        """Its address."""
        return f"http://{HOST}:{self.port}"

    @property
    def artifacts(self) -> Path:
        """The folder of the artifacts."""
        return self.folder / "kept"

    @property
    def log(self) -> Path:
        """What it has said."""
        return self.folder / "server.log"

    @property
    def running(self) -> bool:
        """Whether its process lives, or one of its workers holds the port."""
        return bool(self.process and self.process.is_alive()) or answers(self.port)

    def begin(self) -> None:
        """Start it, unless it is up, and wait until it answers."""
        if self.process and self.process.is_alive():
            return
        place = ["--artifacts-destination", str(self.artifacts), "--serve-artifacts"]
        address = ["--host", HOST, "--port", str(self.port), "--workers", str(self.workers)]
        own = {"MLFLOW_BACKEND_STORE_URI": self.database, **self.environment}
        given = [*place, *address, *self.words], self.folder, {**os.environ, **QUIET, **own}
        self.process = FORKS.Process(target=_serve, args=given)
        self.process.start()
        if not self._answers():
            told = self.log.read_text()[-2000:] if self.log.exists() else ""
            raise RuntimeError(f"mlflow server does not start: {told}")

    def _answers(self) -> bool:
        """Wait for an answer, and return whether it comes before the process ends."""
        # The usual opener keeps the proxies of its first call, such as one that nobody runs.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        until = time.monotonic() + PATIENCE
        while self.process and self.process.is_alive() and time.monotonic() < until:
            with suppress(OSError), opener.open(f"{self.uri}/health", timeout=1):
                return True
            time.sleep(0.1)
        return False

    def collect(self) -> None:
        """Take deleted runs away, as `mlflow gc` does beside a server."""
        place = ["--backend-store-uri", self.database, "--tracking-uri", self.uri]
        place += ["--artifacts-destination", str(self.artifacts)]
        subprocess.run(
            [sys.executable, "-m", "mlflow", "gc", *place],
            cwd=self.folder,
            env={**os.environ, **QUIET},
            check=True,
            capture_output=True,
        )

    def kill(self) -> None:
        """End it at once, and all its processes."""
        if self.process:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()  # which may have no group of its own yet
            self.process.join()


def _serve(words: list[str], folder: Path, environment: dict[str, str]) -> None:
    """Be `mlflow server WORDS` in a folder: its log is there, and its processes are a group."""
    os.setsid()
    os.chdir(folder)
    os.dup2(sys.stdin.fileno(), 0)  # which uvicorn hands on to its workers
    sys.stdin = os.fdopen(0)
    with Path("server.log").open("ab") as log:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(log.fileno(), stream.fileno())
    os.environ.clear()
    os.environ.update(environment)
    from mlflow import cli, server

    server._exec_cmd = _serve_here
    cli.cli(["server", *words])


def _serve_here(command: list[str], extra_env: Mapping[str, str], **_: Any) -> None:
    """Serve in this process, as `python -m uvicorn ...` would in a new one."""
    from uvicorn.main import main

    os.environ.update(extra_env)
    main(command[3:])


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Start a server, and end it."""
    try:
        server.begin()
        yield server
    finally:
        server.kill()
