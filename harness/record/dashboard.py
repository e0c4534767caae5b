"""MLflow's UI of the copies: the addresses of a comparison's charts, and the server."""

import os
import socket
import sys
from pathlib import Path

from normbench.record.mlflow import absolute, copies, is_server
from normbench.results.safe import clean
from normbench.results.store.comparison_files import Comparison, recorded
from normbench.results.store.errors import ResultsError

DEFAULT_STORE = "sqlite:///mlflow.db"
LOOPBACK_HOST, PORT = "127.0.0.1", 5000


def links(comparison: Comparison, uri: str, base: str) -> list[str]:
    """Return lines with the address of a comparison's charts in each experiment.

    Args:
        comparison: The comparison; without a copy in the store there is no line.
        uri: The URI of the store.
        base: The address of the server that shows it.
    """
    copy = copies(comparison).get(clean.blot(absolute(uri)), {"pages": {}})
    return [f"{experiment}: {base}/{page}" for experiment, page in copy["pages"].items()]


def serve(home: Path, uri: str | None, host: str = LOOPBACK_HOST, port: int = PORT) -> None:
    """Print the links to the last copy, and become MLflow's server of its UI.

    If the store is a server, the links are printed and nothing is started.

    Args:
        home: The folder of comparisons.
        uri: The URI of the store; None for that of the latest comparison with a copy.
        host: The address that the server listens on.
        port: Its port.

    Raises:
        ResultsError: The port is in use.
    """
    latest = next((other.tracking for other in recorded(home) if other.tracking), DEFAULT_STORE)
    uri = uri or latest
    base = clean.without_user(uri.rstrip("/")) if is_server(uri) else f"http://{host}:{port}"
    lines = next(filter(None, (links(other, uri, base) for other in recorded(home))), [base])
    if is_server(uri):
        print(*lines, sep="\n")
        return
    _check_port(host, port)
    hint = "MLflow's server starts; the links open in some seconds. Ctrl-C ends it."
    print(*lines, hint, sep="\n", flush=True)
    settings = {
        # On the command line, every user of the machine could read a password.
        "MLFLOW_BACKEND_STORE_URI": absolute(uri),
        "MLFLOW_DISABLE_TELEMETRY": "true",
        # With one worker and no job runner: 2 processes instead of 12.
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    words = [sys.executable, "-m", "mlflow", "server", "--host", host, "--port", str(port)]
    os.execve(sys.executable, [*words, "--workers", "1"], {**os.environ, **settings})


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
