"""Which runs are read: of the last sweep, of one that reused another's jobs, and of a filter."""

import pytest

from normbench import names
from normbench.results.pages import view
from normbench.results.store import runs
from normbench.results.store.errors import ResultsError
from tests.results.store.test_state import OTHER, jobs, store

__all__ = ["jobs", "store"]  # fixtures


def told(sweep):
    """Return the role, the normalizer and the sweep of each run, sorted."""
    columns = ["role", "normalizer", names.SWEEP_ID.column]
    table = sweep.runs.reindex(columns=columns).fillna("")
    return sorted(map(tuple, table.to_numpy().tolist()))


def scheme_id(store, sweep_id, name):
    (run,) = store.writer.search_runs(
        f"{names.SWEEP_ID.equals(sweep_id)} and {names.ROLE.equals(names.SCHEME)} "
        f"and {names.NORMALIZER.equals(name)}"
    )
    return run.info.run_id


def test_a_sweep_has_the_jobs_that_it_reused_with_their_steps_alone(store):
    store.sweep("a", 3)
    store.sweep("b", 0)
    store.writer.tag(scheme_id(store, "a", "minmax"), {names.membership("b").key: "0"})
    found = told(runs.load(store.uri, "b"))
    assert found == [
        ("scheme", "minmax", "a"),
        ("step", "minmax", "a"),
        ("step", "minmax", "a"),
        ("sweep", "", "b"),
    ]
    both = told(runs.load(store.uri, "a", "b"))
    assert len(both) == 1 + 3 * 3 + 1  # each run once
    store.sweep("c", 1)
    store.writer.tag(scheme_id(store, "c", "standard"), {names.membership("b").key: "1"})
    normalizers = [row[1:] for row in told(runs.load(store.uri, "b")) if row[0] != "sweep"]
    assert (
        normalizers
        == [("minmax", "a"), ("standard", "c"), *[("minmax", "a")] * 2] + [("standard", "c")] * 2
    )
    sweep = runs.load(store.uri, "b")
    for role, count in ((names.SCHEME, 2), (names.STEP, 4)):
        search = view.search_filter(sweep, sweep.experiments[0], role)
        assert len(store.writer.search_runs(search)) == count


def test_the_last_sweep_is_shown_beside_the_last_that_has_a_job(store):
    with pytest.raises(ResultsError, match="holds no comparison; run normbench first"):
        runs.last_sweep_ids(store.uri)
    store.sweep("a", 0)
    assert runs.last_sweep_ids(store.uri) == ("a", "a")
    store.sweep("b", 1)
    assert runs.last_sweep_ids(store.uri) == ("b", "b")
    store.half("c", store.sweep("c", 0))  # its job is at work
    assert runs.last_sweep_ids(store.uri) == ("c", "b")
    (half,) = store.writer.search_runs(
        f"{names.SWEEP_ID.equals('c')} and {names.ROLE.equals(names.SCHEME)}"
    )
    store.writer.finish(half.info.run_id, "KILLED")
    assert runs.last_sweep_ids(store.uri) == ("c", "b")
    store.writer.finish(half.info.run_id, "FAILED")
    assert runs.last_sweep_ids(store.uri) == ("c", "c")
    store.sweep("d", 0)
    store.writer.tag(scheme_id(store, "b", "standard"), {names.membership("d").key: "0"})
    assert runs.last_sweep_ids(store.uri) == ("d", "d")  # one that it reused


@pytest.mark.parametrize("name", ["missing", "it's", "a`b"])
def test_a_sweep_that_is_not_there_is_told_with_where_it_was_looked_for(store, name):
    store.sweep("a", 1)
    with pytest.raises(ResultsError) as error:
        runs.load(store.uri, name)
    assert str(error.value).startswith(f"comparison {name}: is not in {store.uri}; normbench ")


def test_a_filter_finds_schemes_with_their_steps_and_sweeps(store):
    store.sweep("a", 3)
    store.sweep("b", 2, experiment=OTHER)
    found = told(runs.load_query(store.uri, "tags.normalizer = 'standard'"))
    assert found == [
        *(("scheme", "standard", sweep) for sweep in "ab"),
        *(("step", "standard", sweep) for sweep in "aabb"),
        *(("sweep", "", sweep) for sweep in "ab"),
    ]
    found = told(runs.load_query(store.uri, "tags.normalizer = 'pca_sphere'"))
    assert found == [
        ("scheme", "pca_sphere", "a"),
        *[("step", "pca_sphere", "a")] * 2,
        ("sweep", "", "a"),
    ]
    with pytest.raises(
        ResultsError, match=r"finds no scheme run in .*tags\.normalizer is minmax or"
    ):
        runs.load_query(store.uri, "tags.normalizer = 'zca'")
    with pytest.raises(ResultsError, match=r"^--where nonsense: "):
        runs.load_query(store.uri, "nonsense")


def test_sweeps_are_listed_the_latest_first_with_what_they_lack(store):
    assert list(runs.sweeps(store.uri).columns) == [
        *("sweep", "experiment", "status", "jobs", "lacks", "command")
    ]
    store.writer.finish(store.sweep("a", 3))
    store.sweep("b", 1)
    listed = runs.sweeps(store.uri)
    assert listed["sweep"].tolist() == ["b", "a"]
    assert listed["status"].tolist() == ["KILLED", "FINISHED"]  # nobody runs b any more
    assert listed["jobs"].tolist() == ["3", "3"]
    assert [str(number) for number in listed["lacks"]] == ["2", ""]
    assert set(listed["command"]) == {"normbench"}


def test_pages_of_runs_are_put_together_up_to_a_number():
    class Page(list):
        token = None

    asked = []

    class Client:
        def search_experiments(self):
            return []

        def search_runs(self, ids, query, max_results, page_token, order_by=None):
            asked.append((max_results, page_token, order_by))
            first = int(page_token or 0)
            page = Page(range(first, min(first + max_results, 2500)))
            page.token = str(first + max_results) if first + max_results < 2500 else None
            return page

    assert runs.search_runs(Client(), "q") == [*range(2500)]
    assert asked == [(1000, None, None), (1000, "1000", None), (1000, "2000", None)]
    asked.clear()
    assert runs.search_runs(Client(), "q", 1500, order_by=["x"]) == [*range(1500)]
    assert asked == [(1000, None, ["x"]), (1000, "1000", ["x"])]
    asked.clear()
    assert runs.search_runs(Client(), "q", 7) == [*range(7)]
    assert runs.search_runs(Client(), "q", 1000) == [*range(1000)]
    assert asked == [(7, None, None), (1000, None, None)]
