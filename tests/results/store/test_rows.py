"""Tables of runs and their rows: the same values as pandas gives, without its detours."""

import numpy as np
import pandas as pd
import pytest

from normbench import names
from normbench.results.figures import drawing
from normbench.results.figures.base import output
from normbench.results.report import page as report
from normbench.results.store.rows import as_rows, as_table
from normbench.results.store.runs import Sweep
from normbench.results.store.stores import _ErrorReportingClient
from tests.conftest import ROOT

ROWS = [
    {"label": "a", "tags.x": "1", "metrics.cost": 0.5, "started": 3, "kept": True},
    {"label": "b", "metrics.cost": np.nan, "started": 4, "kept": False},
    {"label": "c", "tags.x": None, "started": 5, "kept": True},
]


def test_rows_are_those_of_pandas():
    for table in (pd.DataFrame(ROWS), as_table(ROWS), as_table(ROWS).iloc[:0]):
        pandas_own = table.to_dict("records")
        assert str(as_rows(table)) == str(pandas_own)  # nan is not equal to itself
        assert [[*map(type, row.values())] for row in as_rows(table)] == [
            [*map(type, row.values())] for row in pandas_own
        ]


def test_words_are_objects_side_by_side():
    table = as_table(ROWS)
    assert not [column for column in table if table[column].dtype == "str"]
    assert table["metrics.cost"].dtype == float
    assert len(table._mgr.blocks) == 4  # of words, of numbers of two kinds, and of switches


def test_a_table_becomes_rows_in_one_way():
    files = [*(ROOT / "results").rglob("*.py"), *(ROOT / "harness").rglob("*.py")]
    own = [file.name for file in files if 'to_dict("records")' in file.read_text()]
    assert own == ["rows.py"]  # whose remark names it


def test_a_sweep_of_one_experiment_is_its_own_part(three):
    assert three.sweep.only(three.name) is three.sweep
    other = three.sweep.runs.assign(experiment="other")
    both = Sweep(three.sweep.store, "both", pd.concat([three.sweep.runs, other]))
    assert len(both.only("other").runs) == len(other)


@pytest.mark.commands
def test_descents_and_histories_are_read_once_for_all_figures_and_the_report(
    three, tmp_path, monkeypatch
):
    asked = []
    call = _ErrorReportingClient.__getattr__

    def told(self, name):
        def noted(*arguments):
            asked.append((name, *arguments[:2]))
            return call(self, name)(*arguments)

        return noted if name in ("download_artifacts", "get_metric_history") else call(self, name)

    monkeypatch.setattr(_ErrorReportingClient, "__getattr__", told)
    sweep = Sweep(three.sweep.store, three.sweep.sweep_id, three.sweep.runs)
    wanted = ["melt", "windows", "histories", "step_sizes"]
    report.write(sweep, tmp_path, drawing.write(sweep, tmp_path, wanted))
    histories = [call for call in asked if call[0] == "get_metric_history"]
    assert histories
    assert len(histories) == len(set(histories))
    kept = [run for _, run, path in asked if path == f"arrays/{names.DESCENT_ARRAYS}.npz"]
    assert sorted(kept) == sorted(sweep.of_role(names.SCHEME)["run_id"])


def test_a_figure_is_drawn_once_a_file(three, tmp_path, monkeypatch):
    figure = drawing.figure(three.sweep, three.name, "histories")
    drawn = []
    draw = type(figure).draw
    monkeypatch.setattr(
        type(figure), "draw", lambda self, *rest: (drawn.append(1), draw(self, *rest))[1]
    )
    output.save(figure, tmp_path / "histories", {}, ("png", "svg"))
    assert len(drawn) == 2
