"""MLflow's UI on a comparison: the link that opens on its charts, and the server behind it."""

import os
import socket
import subprocess
import sys
from urllib.parse import quote

from results.runs import Sweep, last_sweep_id, load

HOST, PORT = "127.0.0.1", 5000


def link(sweep: Sweep, experiment: str, port: int = PORT) -> str:
    """Return the address that opens MLflow's charts on the scheme runs of a sweep."""
    rows = sweep.of_role("sweep", experiment)
    query = quote(f"tags.role = 'scheme' and tags.sweep_id = '{sweep.sweep_id}'")
    base = sweep.store if sweep.store.startswith("http") else f"http://{HOST}:{port}"
    return (
        f"{base}/#/experiments/{rows['experiment_id'].iloc[0]}/runs"
        f"?workflowType=machine_learning&compareRunsMode=CHART&searchFilter={query}"
        # Sorted by date, MLflow would fold the schemes below their sweep.
        f"&orderByKey={quote('metrics.`final/train_cost`', safe='')}&orderByAsc=true"
    )


def serve(store: str, host: str = HOST, port: int = PORT) -> int:
    """Serve MLflow's UI until Ctrl-C, after printing the links to the last comparison.

    Raises LookupError where the store is missing or empty or the port is taken.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise LookupError(
                f"--port {port}: cannot be used on {host} ({error.strerror}); "
                "another dashboard may run there; choose another port with --port"
            ) from error
    sweep = load(store, last_sweep_id(store))
    for experiment in sweep.experiments:
        print(f"{experiment}: {link(sweep, experiment, port)}", flush=True)
    print("Ctrl-C ends it.", flush=True)
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", sweep.store]
    command += ["--host", host, "--port", str(port), "--workers", "1"]
    # One worker and no job runner: 2 processes instead of 12.
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    server = subprocess.Popen(command, env={**os.environ, **quiet})
    try:
        return server.wait()
    except KeyboardInterrupt:
        server.terminate()
        server.wait()
        return 0
