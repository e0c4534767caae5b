"""MLflow's own server, in front of a database: started, killed, and started again."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.servers.ports import HOST, answers, free_port

PATIENCE = 180.0  # seconds until it answers
QUIET = {
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


@dataclass
class Server:
    """`mlflow server` for a database, with the artifacts in a folder that it alone knows."""

    database: str  # its URI, which may hold a password
    folder: Path
    workers: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

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
        return bool(self.process and self.process.poll() is None) or answers(self.port)

    def begin(self) -> None:
        """Start it, unless it is up, and wait until it answers."""
        if self.process and self.process.poll() is None:
            return
        place = ["--artifacts-destination", str(self.artifacts), "--serve-artifacts"]
        address = ["--host", HOST, "--port", str(self.port), "--workers", str(self.workers)]
        own = {"MLFLOW_BACKEND_STORE_URI": self.database, **self.environment}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mlflow", "server", *place, *address, *self.words],
                cwd=self.folder,
                env={**os.environ, **QUIET, **own},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(f"{self.uri}/health", timeout=1)
                return
            except OSError as error:
                if self.process.poll() is not None or time.monotonic() > until:
                    told = self.log.read_text()[-2000:]
                    raise RuntimeError(f"mlflow server does not start: {told}") from error
                time.sleep(0.1)

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
            self.process.wait()


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Start a server, and end it."""
    try:
        server.begin()
        yield server
    finally:
        server.kill()
