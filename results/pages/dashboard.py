"""MLflow's UI: the link to a comparison's charts, and the server."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from threading import Thread

from normbench import names
from normbench.results.pages import view
from normbench.results.safe import clean
from normbench.results.store import saved_views, state, uris
from normbench.results.store.errors import ResultsError
from normbench.results.store.runs import Sweep

LOOPBACK_HOST, PORT = "127.0.0.1", 5000
POLL_INTERVAL = 0.2  # seconds between two attempts to reach the starting server
ANSWER_TIMEOUT = 2.0  # seconds that one attempt waits for an answer


def link(sweep: Sweep, experiment: str, port: int = PORT, host: str = LOOPBACK_HOST) -> str:
    """Return the address of MLflow's charts of a sweep's scheme runs.

    Args:
        sweep: The runs.
        experiment: The experiment.
        port: The port of a local server, which `serve` starts.
        host: The address of that server.

    Returns:
        The address; on the store's own server if it has one.
    """
    server = clean.without_user(sweep.store.rstrip("/"))  # no password on the terminal
    base = server if uris.is_server(server) else f"http://{host}:{port}"
    return f"{base}/{path(sweep, experiment)}"


def path(sweep: Sweep, experiment: str, role: str = names.SCHEME) -> str:
    """Return the link to a sweep's charts without the server's address.

    Args:
        sweep: The runs.
        experiment: The experiment.
        role: `scheme` or `step`: the runs that the charts show.

    Returns:
        The link: to the saved view, or to a search if no view was saved.
    """
    rows = sweep.of_role(names.SWEEP, experiment)
    experiment_id = rows["experiment_id"].iloc[0]
    key = view.view_id(sweep.sweep_id, role)
    if sweep.has_tag(experiment, saved_views.VIEW + key):
        return saved_views.page(experiment_id, view=key)
    search = view.search_filter(sweep, experiment, role)
    return saved_views.page(experiment_id, search=search, order=view.sort_key(sweep.sweep_id))


def serve(store: str, host: str = LOOPBACK_HOST, port: int = PORT) -> int:
    """Serve MLflow's UI until Ctrl-C, and print the links to the last comparison once it answers.

    If the store is a server, its links are printed and nothing is started.

    Args:
        store: An MLflow store or server.
        host: The address that the server listens on.
        port: Its port.

    Returns:
        The exit code: that of the server, 0 after Ctrl-C.

    Raises:
        ResultsError: The store is missing or empty, or the port is in use.
    """
    serves_itself = uris.is_server(store)  # the store, which has MLflow's UI already
    if not serves_itself:
        _check_port(host, port)
    sweep, notes = state.read(store)
    for note in notes:
        print(note, flush=True)
    links = [f"{name}: {link(sweep, name, port, host=host)}" for name in sweep.experiments]
    if serves_itself:
        print(*links, sep="\n", flush=True)
        return 0
    print("MLflow's server starts; the link comes when it answers. Ctrl-C ends it.", flush=True)
    command = [sys.executable, "-m", "mlflow", "server"]
    command += ["--host", host, "--port", str(port), "--workers", "1"]
    settings = {
        # On the command line, every user of the machine could read a password.
        "MLFLOW_BACKEND_STORE_URI": sweep.store,
        "MLFLOW_DISABLE_TELEMETRY": "true",
        # With one worker and no job runner: 2 processes instead of 12.
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    signal.signal(signal.SIGTERM, _leave)
    server = subprocess.Popen(
        command,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert server.stdout is not None
    Thread(target=_announce, args=(server, host, port, links), daemon=True).start()
    try:
        for line in server.stdout:  # printed through the sanitizing stream
            print(line, end="", flush=True)
        return server.wait()
    except KeyboardInterrupt:
        return 0
    finally:  # also if a signal ends this process alone
        server.terminate()
        server.wait()


def _announce(server: "subprocess.Popen[str]", host: str, port: int, links: list[str]) -> None:
    """Print the links once the server answers; return without them if it ends before.

    Args:
        server: The process of the server.
        host: The address that it listens on.
        port: Its port.
        links: The lines to print.
    """
    while server.poll() is None:  # while the process runs
        with (
            suppress(OSError, HTTPException),
            closing(HTTPConnection(host, port, timeout=ANSWER_TIMEOUT)) as connection,
        ):
            connection.request("GET", "/health")
            if connection.getresponse().status == HTTPStatus.OK:
                print(*links, sep="\n", flush=True)
                return
        time.sleep(POLL_INTERVAL)


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
