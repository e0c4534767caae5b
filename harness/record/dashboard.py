"""MLflow's UI of the copies: the addresses of a comparison's charts, and the server."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

from normbench.record.mlflow import absolute, copies, is_server
from normbench.results.safe import clean
from normbench.results.store.comparison_files import Comparison, recorded
from normbench.results.store.errors import ResultsError

DEFAULT_STORE = "sqlite:///mlflow.db"
LOOPBACK_HOST, PORT = "127.0.0.1", 5000
ATTEMPT_SECONDS, ANSWER_SECONDS = 0.2, 2.0


def links(comparison: Comparison, uri: str, base: str) -> list[str]:
    """Return lines with the address of a comparison's charts in each experiment.

    Args:
        comparison: The comparison; without a copy in the store there is no line.
        uri: The URI of the store.
        base: The address of the server that shows it.
    """
    copy = copies(comparison).get(clean.blot(absolute(uri)), {"pages": {}})
    return [f"{experiment}: {base}/{page}" for experiment, page in copy["pages"].items()]


def serve(home: Path, uri: str | None, host: str = LOOPBACK_HOST, port: int = PORT) -> int:
    """Serve MLflow's UI until Ctrl-C, and print the links to the last copy once it answers.

    If the store is a server, the links are printed and nothing is started.

    Args:
        home: The folder of comparisons.
        uri: The URI of the store; None for that of the latest comparison with a copy.
        host: The address that the server listens on.
        port: Its port.

    Returns:
        The exit code: that of the server, 0 after Ctrl-C.

    Raises:
        ResultsError: The port is in use.
    """
    latest = next((other.tracking for other in recorded(home) if other.tracking), DEFAULT_STORE)
    uri = uri or latest
    base = clean.without_user(uri.rstrip("/")) if is_server(uri) else f"http://{host}:{port}"
    lines = next(filter(None, (links(other, uri, base) for other in recorded(home))), [base])
    if is_server(uri):
        print(*lines, sep="\n", flush=True)
        return 0
    _check_port(host, port)
    print("MLflow's server starts; the link comes when it answers. Ctrl-C ends it.", flush=True)
    settings = {
        # On the command line, every user of the machine could read a password.
        "MLFLOW_BACKEND_STORE_URI": absolute(uri),
        "MLFLOW_DISABLE_TELEMETRY": "true",
        # With one worker and no job runner: 2 processes instead of 12.
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    words = [sys.executable, "-m", "mlflow", "server", "--host", host, "--port", str(port)]
    signal.signal(signal.SIGTERM, _leave)
    server = subprocess.Popen([*words, "--workers", "1"], env={**os.environ, **settings})
    try:
        # Without the proxies of the environment, which do not know this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while lines and server.poll() is None:
            with (
                suppress(OSError),
                opener.open(f"http://{host}:{port}/health", None, ANSWER_SECONDS),
            ):
                print(*lines, sep="\n", flush=True)
                lines = []
            time.sleep(ATTEMPT_SECONDS)
        return server.wait()
    except KeyboardInterrupt:
        return 0
    finally:  # also if a signal ends this process alone
        server.terminate()
        server.wait()


def _leave(number: int, _: object) -> None:
    """Exit on a signal, with the exit code of a shell, so that `finally` ends the server."""
    raise SystemExit(128 + number)


def _check_port(host: str, port: int) -> None:
    """Raise ResultsError if a port cannot be used."""
    with socket.socket() as probe:
        # A port whose last connection was closed a moment ago is free, as it is for the server.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ResultsError(
                f"--port {port}: cannot be used on {host} ({reason}); "
                "another dashboard may run there; choose another port with --port"
            ) from error
