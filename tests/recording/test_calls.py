"""What a writer asks of its store: call by call, against a client that notes them."""

from types import SimpleNamespace

import pytest

from normbench import names
from normbench.recording.reuse import lookup
from normbench.recording.store import writer as writing
from normbench.recording.store.records import RecordHeader
from normbench.recording.store.writer import Writer
from normbench.results.store import entities
from normbench.results.store.job_records import JobRecord, RunRecord


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


@pytest.mark.parametrize("count", [0, 1, 100, 101, 250])
def test_a_run_begins_with_a_hundred_tags_and_gets_the_others_by_hundreds(count):
    writer, client = writer_of()
    tags = {f"t{number}": str(number) for number in range(count)}
    assert writer.create_run("e", "n", tags, 5) == "run 0"
    ((experiment, started, first, name),) = client.named("create_run")
    assert (experiment, started, name) == ("7", 5, "n")
    later = [dict(given[1][1]) for given in client.named("log_batch")]
    assert [len(first), *map(len, later)] == {
        **{0: [0], 1: [1], 100: [100], 101: [100, 1]},
        **{250: [100, 100, 50]},
    }[count]
    assert {**first, **{key: text for tags in later for key, text in tags.items()}} == tags


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (1000, [1000]), (2001, [1000, 1000, 1])])
def test_points_are_written_by_thousands(count, sizes):
    writer, client = writer_of()
    points = [("m", 0.5 * k, 3, k) for k in range(count)]
    writer.log_points("r", points)
    batches = [given[1][1] for given in client.named("log_batch")]
    assert [*map(len, batches)] == sizes
    assert [tuple(point) for batch in batches for point in batch] == points


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (100, [100]), (201, [100, 100, 1])])
def test_parameters_are_written_by_hundreds(count, sizes):
    writer, client = writer_of()
    params = {f"p{number}": str(number) for number in range(count)}
    writer.log_params("r", params)
    batches = [given[1][1] for given in client.named("log_batch")]
    assert [*map(len, batches)] == sizes
    assert {param.key: param.value for batch in batches for param in batch} == params


def test_metrics_of_a_run_have_the_present_time_in_milliseconds(monkeypatch):
    writer, client = writer_of()
    monkeypatch.setattr(writing.time, "time", lambda: 12.3456)
    writer._log("r", [("m", 0.5, 2)])
    ((_, (_, (point,))),) = client.named("log_batch")
    assert tuple(point) == ("m", 0.5, 12345, 2)


@pytest.mark.parametrize(("taken", "free"), [(0, "s"), (1, "s.2"), (3, "s.4")])
def test_an_id_of_a_sweep_that_is_there_is_numbered(monkeypatch, taken, free):
    writer, _ = writer_of()
    asked = []

    def search(client, query, max_runs):
        asked.append(query)
        return [run("of that id")] if len(asked) <= taken else []

    monkeypatch.setattr(writing.stores, "search_runs", search)
    assert writer.unused_sweep_id("s") == free
    assert asked[-2:] == [names.SWEEP_ID.equals(free), names.membership(free).exists]


def test_an_experiment_is_looked_for_once_and_made_where_it_is_missing():
    writer, client = writer_of()
    assert [writer._experiment(name) for name in ("e", "e", "data/cost", "data/cost")] == [
        *("7", "7", "8", "8")
    ]
    (made,) = client.named("create_experiment")
    assert made[0] == "data/cost"
    assert made[1].startswith("file:///a/")
    assert "/" not in made[1].removeprefix("file:///a/")
    bare, client = writer_of(artifacts=None)
    bare._experiment("x")
    assert client.named("create_experiment") == [("x", None)]


FINISHED = "attributes.status = 'FINISHED'"
QUESTIONS = {
    "find_by_fingerprint": (("e", "f"), [names.FINGERPRINT.equals("f"), FINISHED]),
    "has_grid": (
        ("e", "g", "d"),
        [
            names.GRID_DESCENT.equals("g"),
            names.DESCENT.equals("d").replace(" = ", " != "),
            FINISHED,
        ],
    ),
    "run_of_request": (("e", "q"), [names.REQUEST.equals("q"), FINISHED]),
    "has_ended_job": (
        ("e", "s/3"),
        [
            names.JOB.equals("s/3"),
            names.ROLE.equals(names.SCHEME),
            "attributes.status != 'KILLED'",
        ],
    ),
    "ended_member": (
        ("e", "s", 3),
        [
            names.membership("s").equals("3"),
            names.ROLE.equals(names.SCHEME),
            *("attributes.status != 'KILLED'", "attributes.status != 'RUNNING'"),
        ],
    ),
    "tags_of_sweep_with": (
        ("e", names.JOB, "x"),
        [names.JOB.equals("x"), names.ROLE.equals(names.SWEEP), FINISHED],
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_to_the_store_takes_its_latest_run(question):
    arguments, terms = QUESTIONS[question]
    latest, older = run("new", a="1"), run("old")
    writer, client = writer_of([latest, older])
    answer = getattr(writer, question)(*arguments)
    (asked,) = client.named("search_runs")
    assert asked == (["7"], " and ".join(terms), {"max_results": 1})
    of_latest = {"find_by_fingerprint": "new", "tags_of_sweep_with": {"a": "1"}}
    yes = question in ("has_grid", "has_ended_job")
    assert answer == (yes or of_latest.get(question, latest))
    nothing = getattr(writer_of()[0], question)(*arguments)
    assert nothing is (False if yes else None)


def test_runs_of_a_descent_are_all_that_have_finished():
    runs = [run("a"), run("b")]
    writer, client = writer_of(runs)
    assert writer.runs_of_descent("e", "d") == runs
    assert client.named("search_runs") == [
        (["7"], f"{names.DESCENT.equals('d')} and {FINISHED}", {})
    ]
    assert writer_of()[0].run_of_request("another", "q") is None


def test_a_job_that_joins_a_sweep_gets_its_number_there():
    writer, client = writer_of()
    writer.adopt("r", "a/b/12")
    ((who, (_, (tag,))),) = client.named("log_batch")
    assert (who, tag.key, tag.value) == ("r", names.membership("a/b").key, "12")


def record(failure=""):
    tags = {names.NORMALIZER.key: "standard"}
    steps = [RunRecord(f"step {number}", tags, [("m", 0.5, 0)]) for number in range(2)]
    return JobRecord(
        "-", "e", "parent", {"p": "1"}, RunRecord("standard", tags), steps, {}, {}, failure
    )


@pytest.mark.parametrize("failure", ["", "Traceback"])
def test_the_run_of_a_scheme_ends_last_and_as_its_job_did(failure):
    asked = []

    def statuses(runs):
        asked.extend(runs)
        return dict.fromkeys(runs, "FINISHED") | {"run 0": "FAILED" if failure else "FINISHED"}

    writer, client = writer_of(statuses=statuses)
    assert writer.write(record(failure)) == "run 0"
    assert [who for who, *_ in client.named("set_terminated")] == ["run 1", "run 2", "run 0"]
    assert client.named("set_terminated")[-1] == (
        "run 0",
        "FAILED" if failure else "FINISHED",
        None,
    )
    texts = client.named("log_text")
    assert texts == ([("run 0", "Traceback", "traceback.txt")] if failure else [])
    assert sorted(asked) == ["run 0", "run 1", "run 2"]
    scheme, *steps = client.named("create_run")
    assert scheme[2][names.PARENT.key] == "parent"
    assert {step[2][names.PARENT.key] for step in steps} == {"run 0"}
    assert [given[2][names.ROLE.key] for given in (scheme, *steps)] == [
        *(names.SCHEME, names.STEP, names.STEP)
    ]
    assert names.COLOR.key in scheme[2]


def test_runs_of_sweeps_that_have_ended_are_ended():
    """A job's finished steps, too; a sweep that goes on, and what is of none, stay."""
    role = names.ROLE.key
    gone = [run("g", **{"sweep_id": "g", role: names.SWEEP})]
    alive = [run("l", **{"sweep_id": "l", role: names.SWEEP})]
    running = [
        *gone,
        *alive,
        run("job", **{"sweep_id": "g", role: names.SCHEME}),
        run("step", **{"sweep_id": "g", role: names.STEP}),
        run("its", **{"sweep_id": "l", role: names.SCHEME}),
        run("lost", **{"sweep_id": "nobody's", role: names.SCHEME}),
        run("foreign"),
    ]
    writer, client = writer_of()

    def search(query):
        if names.PARENT.key in query:
            return [run("finished step")]
        for sweep, runs in (("g", gone), ("l", alive)):
            if names.SWEEP_ID.equals(sweep) in query:
                return runs
        return running if "RUNNING" in query else []

    writer.search_runs = search
    assert writer.end_abandoned(lambda tags: tags["sweep_id"] == "g", "FAILED") == 3
    assert [given[:2] for given in client.named("set_terminated")] == [
        *(("g", "FAILED"), ("finished step", "KILLED"), ("job", "KILLED"), ("step", "KILLED"))
    ]


HEADER = RecordHeader(
    "-", "e", "", {"rules.tail": 0.1}, {names.DESCENT.key: "d", names.FINGERPRINT.key: "f"}
)


def test_a_recorded_run_is_reused_where_it_has_all_that_is_asked():
    lost = {names.DESCEND_AGAIN.key: "path"}
    runs = [run("less"), run("other", **lost), run("whole")]
    runs[0].data.params = {"record": "[]"}
    runs[1].data.params = runs[2].data.params = {"record": "['path']"}
    header = RecordHeader("-", "e", "", {"record": ["path"]}, HEADER.tags)
    writer, _ = writer_of(runs)
    assert lookup.find_runs_of_descent(writer, header) == runs[2:]
    nothing_asked = RecordHeader("-", "e", "", {"record": []}, HEADER.tags)
    writer, _ = writer_of(runs)
    assert lookup.find_runs_of_descent(writer, nothing_asked) == runs


def test_of_runs_that_can_be_reused_an_equal_one_comes_first():
    equal = run("equal", **{names.FINGERPRINT.key: "f"})
    judged_alike, judged_otherwise = run("alike"), run("otherwise")
    for known, tail in ((equal, "0.2"), (judged_alike, "0.1"), (judged_otherwise, "0.3")):
        known.data.params = {"rules.tail": tail}
    assert lookup.find_equal_run([judged_otherwise, judged_alike, equal], HEADER) == "equal"
    assert lookup.find_equal_run([judged_otherwise, judged_alike], HEADER) == "alike"
    assert lookup.find_equal_run([judged_otherwise], HEADER) is None


def test_the_first_run_whose_new_judging_keeps_what_is_asked_is_taken(monkeypatch):
    def judged(recorded, header, data):
        return records[recorded.run_id]

    def judging(**lost):
        return SimpleNamespace(scheme=SimpleNamespace(tags=lost))

    records = {
        "no descent": None,
        "lost": judging(**{names.DESCEND_AGAIN.key: "path"}),
        "whole": judging(),
        "later": judging(),
    }
    monkeypatch.setattr(lookup, "load_scheme", lambda uri, run_id: None)
    monkeypatch.setattr(lookup, "input_of", lambda run: {})
    monkeypatch.setattr(lookup, "rejudge_run", judged)
    header = RecordHeader("-", "e", "", {"record": ["path"]}, {})
    writer, _ = writer_of()
    runs = [run(name) for name in records]
    assert lookup.rejudge_recorded(writer, runs, header) is records["whole"]
    assert lookup.rejudge_recorded(writer, runs[:2], header) is None
    asks_less = RecordHeader("-", "e", "", {}, {})
    assert lookup.rejudge_recorded(writer, runs, asks_less) is records["lost"]


def test_a_run_has_the_fields_of_its_first_data_set():
    data = entities.Dataset("d", "1", "t", "{}")
    inputs = SimpleNamespace(dataset_inputs=[entities.DatasetInput(data, [])])
    fields = writing.input_of(SimpleNamespace(inputs=inputs))
    assert {
        "name": "d",
        "digest": "1",
        "source_type": "t",
        "source": "{}",
    }.items() <= fields.items()
    assert writing.input_of(SimpleNamespace(inputs=SimpleNamespace(dataset_inputs=[]))) == {}
