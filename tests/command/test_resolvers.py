"""What a variable of the environment gives a setting: a secret, where it is no number."""

import pytest
from omegaconf import OmegaConf

from normbench.command.config import resolvers
from normbench.recording.store import records
from normbench.results.safe import clean, secrets


@pytest.fixture
def settings(monkeypatch):
    """A resolved config, some of whose values are of variables, and the text of its defaults."""
    monkeypatch.setattr(secrets, "_secrets", set())
    monkeypatch.setattr(secrets, "_settings", set())
    for name, value in {"SSHPASS": "hunter2hunter2", "SHORT": "abc", "COUNT": "12"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("UNSET", raising=False)
    secrets._learned_pattern.cache_clear()
    resolvers.register()
    config = OmegaConf.create(
        {
            "dataset": {
                "target": "${oc.env:SSHPASS}",
                "drop": ["id", "${oc.env:SHORT}"],
                "path": "x-${oc.env:UNSET,plain-default}.csv",
                "seed": "${oc.decode:${oc.env:COUNT}}",
            },
            "data_dir": "${oc.env:HOME}/data",
        }
    )
    yield OmegaConf.to_container(config, resolve=True)
    secrets._learned_pattern.cache_clear()


def test_powers_of_ten_are_printed_as_they_resolve():
    resolvers.register()
    config = OmegaConf.create({"step_sizes": "${decades:-1,1}"})
    OmegaConf.resolve(config)  # as `--cfg job --resolve` does
    assert config == {"step_sizes": [0.1, 1.0, 10.0]}


def test_it_is_blotted_in_its_setting_and_stays_where_numbers_are_computed_with(settings):
    dataset = settings["dataset"]
    assert dataset["target"] == "hunter2hunter2"  # what is run has it
    params = {f"dataset.{key}": value for key, value in dataset.items()}
    assert records._texts({**params, "data_dir": settings["data_dir"]}) == {
        "dataset.target": "***",
        "dataset.drop": "['id', '***']",
        "dataset.path": "x-plain-default.csv",
        "dataset.seed": "12",
        "data_dir": settings["data_dir"],
    }
    assert clean.line("no column hunter2hunter2") == "no column ***"
    assert clean.line("plain-default and abc") == "plain-default and abc"


def test_a_variable_that_is_not_set_is_told_as_before():
    resolvers.register()
    with pytest.raises(Exception, match="Environment variable 'NORMBENCH_UNSET' not found"):
        OmegaConf.to_container(OmegaConf.create({"a": "${oc.env:NORMBENCH_UNSET}"}), resolve=True)
