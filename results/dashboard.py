"""MLflow's UI on a comparison: the link that opens on its charts, and the server behind it."""

from urllib.parse import quote

from results.runs import Sweep

HOST, PORT = "127.0.0.1", 5000


def link(sweep: Sweep, experiment: str, port: int = PORT) -> str:
    """Return the address that opens MLflow's charts on the scheme runs of a sweep."""
    rows = sweep.of_role("sweep", experiment)
    query = quote(f"tags.role = 'scheme' and tags.sweep_id = '{sweep.sweep_id}'")
    return (
        f"http://{HOST}:{port}/#/experiments/{rows['experiment_id'].iloc[0]}/runs"
        f"?workflowType=machine_learning&compareRunsMode=CHART&searchFilter={query}"
    )
