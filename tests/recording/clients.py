"""A client that notes what a writer asks of it."""

from types import SimpleNamespace

from normbench.recording.store.writer import Writer
from normbench.results.store import entities


class Client:
    """A client with one experiment, `e`, that notes each call; queries: the answers to searches."""

    has_transactions = False

    def __init__(self, answers=()):
        self.calls, self.answers, self.experiments = [], list(answers), {"e": "7"}

    def get_experiment_by_name(self, name):
        known = self.experiments.get(name)
        known_fields = {"artifact_location": "file:///a", "lifecycle_stage": "active"}
        return known and SimpleNamespace(experiment_id=known, **known_fields)

    def create_experiment(self, name, artifact_location):
        self.calls.append(("create_experiment", name, artifact_location))
        self.experiments[name] = str(len(self.experiments) + 7)

    def create_run(self, experiment, started, tags, name):
        number = sum(call[0] == "create_run" for call in self.calls)
        self.calls.append(("create_run", experiment, started, tags, name))
        return run(f"run {number}")

    def search_runs(self, experiments, query, **more):
        self.calls.append(("search_runs", experiments, query, more))
        return self.answers.pop(0) if self.answers else []

    def __getattr__(self, name):
        return lambda *given, **named: self.calls.append((name, *given, *named.items()))

    def named(self, name):
        return [call[1:] for call in self.calls if call[0] == name]


def run(run_id, status="FINISHED", experiment="7", **tags):
    info = SimpleNamespace(run_id=run_id, status=status, experiment_id=experiment)
    return SimpleNamespace(info=info, data=SimpleNamespace(tags=tags, params={}))


def writer_of(*answers, artifacts="file:///a", statuses=None):
    client, settled = Client(answers), []
    store = SimpleNamespace(
        client=client,
        entities=entities,
        artifacts=artifacts,
        database=None,
        uri="http://host:1",
        safe_uri="http://host:1",
        sync=lambda: settled.append(len(client.calls)),
        statuses=statuses or (lambda runs: dict.fromkeys(runs, "FINISHED")),
    )
    return Writer(store), client
