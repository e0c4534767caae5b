"""The table of settings: what follows from a row, and that nothing is set without one."""

from dataclasses import fields

import pandas as pd
import pytest
from omegaconf import OmegaConf

from normbench import settings
from normbench.choices import CONF, names, options
from normbench.datasets import Sampling, UserError
from normbench.record.identity import job_digest
from normbench.results.compare import problems
from normbench.results.store.run_labels import labels
from normbench.settings import OF_OPTIONS, Role, Setting
from tests.conftest import ROOT

IN_CONFIG = {row.name: row for row in settings.TABLE if row.default is not OF_OPTIONS}
# By role: the part of a job's identity that a setting enters, and whether it makes other problems.
FOLLOWS = {
    Role.PROBLEM: ("descent", True),
    Role.SCHEME: ("descent", False),
    Role.DESCENT: ("descent", True),
    Role.REPETITION: ("descent", True),
    Role.JUDGING: ("judged", False),
    Role.DRAWING: ("asked", False),
    Role.LOCATION: ("", False),
}


def test_a_setting_without_a_role_is_an_error():
    with pytest.raises(TypeError, match="role"):
        Setting("quota", default=1, help="points of a step")
    with pytest.raises(TypeError, match="quota: has the role 'descent'"):
        Setting("quota", "descent", 1, "points of a step")


@pytest.mark.parametrize("role", Role)
def test_what_follows_from_the_role_of_a_new_setting(role, monkeypatch):
    monkeypatch.setitem(settings.ROWS, "quota", Setting("quota", role, 1, "points of a step"))
    part, apart = FOLLOWS[role]
    entered = {
        each
        for each in ("descent", "asked", "judged")
        if settings.identity_params(each, {"quota": 2})
    }
    assert entered == {part} - {""}
    assert (job_digest("-", {"quota": 1}) != job_digest("-", {"quota": 2})) == (
        part in ("asked", "judged")
    )
    schemes = pd.DataFrame(
        {
            "experiment": "x",
            "normalizer": list("aabb"),
            "role": "scheme",
            "run_id": list("1234"),
            "tags.sweep_id": "s",
            "params.quota": list("1212"),
        }
    )
    assert problems.problems(schemes) == [{"quota": n} if apart else {} for n in "1212"]
    assert ("quota=1" in labels(schemes)[0]) == (role is not Role.LOCATION)


def test_a_setting_that_is_in_no_row_cannot_be_set(monkeypatch):
    with pytest.raises(UserError, match="quota: no such setting"):
        settings.check("quota", 1)
    assert settings.find_setting("quota") is None
    with pytest.raises(UserError, match=r"rules\.most: no such setting"):
        settings.check("rules.most", 1)


@pytest.mark.parametrize("name", IN_CONFIG)
def test_a_default_keeps_its_own_rule_and_has_one_line_of_help(name):
    row = IN_CONFIG[name]
    if not str(row.default).startswith("${"):
        value = settings.check(name, row.default)
        assert (list(value) if isinstance(row.default, list) else value) == row.default
    assert row.help
    assert "\n" not in row.help


def test_the_config_sets_what_the_table_has():
    told = OmegaConf.to_container(OmegaConf.load(CONF / "config.yaml"), resolve=False)
    chosen = {key: value for entry in told.pop("defaults")[1:] for key, value in entry.items()}
    told.pop("hydra")
    flat = {
        f"{key}.{name}" if isinstance(value, dict) else key: inner
        for key, value in told.items()
        for name, inner in (value.items() if isinstance(value, dict) else [(key, value)])
    }
    flat |= {key: value for key, value in chosen.items() if key in settings.ROWS}
    assert flat.pop("step_sizes") == "${decades:-7,2}"
    rows = {name: row.default for name, row in IN_CONFIG.items()}
    assert rows.pop("step_sizes") == settings.powers_of_ten(-7, 2)
    assert flat == rows
    drawn = {f"dataset.{field.name}": field.default for field in fields(Sampling)}
    assert drawn == {key: value for key, value in flat.items() if key.startswith("dataset.")}


def test_the_reference_page_is_that_of_the_table():
    page = (ROOT / "docs" / "settings.md").read_text()
    assert page == settings.reference(), "python -m normbench.settings > docs/settings.md"
    assert all(page.count(f"| `{row.name}` |") == 1 for row in settings.TABLE)


@pytest.mark.parametrize("group", settings.CHOICES)
def test_every_option_of_a_choice_has_a_row(group):
    for name in names(group):
        assert all(settings.find_setting(f"{group}.{key}") for key in options(group, name))
