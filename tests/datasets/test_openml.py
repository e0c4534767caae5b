"""OpenML through scikit-learn, which is replaced: no test needs a network."""

import hashlib
import io
import json
from email.message import Message
from urllib.error import URLError

import pandas as pd
import pytest
from sklearn.utils import Bunch

from normbench.datasets import UserError
from normbench.datasets.openml import openml

FRAME = pd.DataFrame(
    {
        "length": [1.0, 2.0, 3.0],
        "kind": pd.Categorical(["a", "b", "a"]),
        "class": pd.Categorical(["x", "y", "x"]),
    }
)


@pytest.fixture
def asked(monkeypatch):
    calls = []

    def fetch_openml(**options):
        calls.append(options)
        return Bunch(frame=FRAME, target_names=["class"], url="https://www.openml.org/d/1")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    return calls


def test_a_name_or_an_id_is_asked_for(asked, tmp_path):
    data = openml(str(tmp_path), name="things", version=2, drop=["kind"])
    assert (data.name, data.task, data.encoding) == ("things", "binary", "x=0, y=1")
    assert data.feature_names == ("length",)
    assert asked[0]["name"] == "things"
    assert asked[0]["version"] == 2
    assert asked[0]["data_home"] == str(tmp_path / "openml")
    assert openml(str(tmp_path), id=1, drop=["kind"]).name == "openml_1"
    assert asked[1]["data_id"] == 1


def test_a_column_can_be_the_target(asked, tmp_path):
    data = openml(str(tmp_path), name="things", target="kind", drop=["class"])
    assert data.class_names == ("a", "b")


def test_what_goes_wrong_is_told_in_one_line(monkeypatch, tmp_path):
    def fetch_openml(**_):
        raise URLError("no route\nto it")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    with pytest.raises(UserError, match=r"cannot be had from openml.org .*no route to it"):
        openml(str(tmp_path), name="things")


@pytest.mark.parametrize(
    "wrong", [{"id": 0}, {"id": "iris"}, {"name": "x", "version": 0}, {}, {"name": "x", "id": 1}]
)
def test_the_options_are_checked(wrong, tmp_path):
    with pytest.raises(UserError, match=r"cannot be had .*dataset\.name=mnist_784 or dataset\.id"):
        openml(str(tmp_path), **wrong)


ARFF = b"@relation x\n@attribute a numeric\n@attribute c {u,v}\n@data\n" + b"1,u\n2,v\n3,u\n4,v\n"
ABOUT = {
    **{"id": "1", "name": "x", "version": "1", "status": "active", "format": "ARFF", "tag": []},
    **{"description": "d", "licence": "l", "file_id": "7", "default_target_attribute": "c"},
    **{"url": "https://www.openml.org/data/v1/download/7/x.arff"},
    "md5_checksum": hashlib.md5(ARFF).hexdigest(),
}
COLUMNS = [
    {
        **{"index": str(number), "name": name, "data_type": kind, "is_target": target},
        **{"is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"},
    }
    for number, (name, kind, target) in enumerate(
        [("a", "numeric", "false"), ("c", "nominal", "true")]
    )
]
ANSWERS = {
    "about": {"data_set_description": ABOUT},
    "features": {"data_features": {"feature": COLUMNS}},
    "qualities": {"data_qualities": {"quality": []}},
    "download": ARFF,
}
MALFORMED = {
    "no text": {"about": b"\xff\xfe"},
    "no answer": {"features": b"<html>"},
    "no keys": {"about": {"data_set_description": {}}},
    "another file": {"download": ARFF + b"5,u\n"},
}


@pytest.fixture
def answered(monkeypatch):
    """Return a function that sets what openml.org answers."""

    def answer(parts):
        def urlopen(request, *_, **__):
            address = request.full_url
            part = next((name for name in ANSWERS if f"/{name}/" in address), "about")
            content = parts.get(part, ANSWERS[part])
            text = content if isinstance(content, bytes) else json.dumps(content).encode()
            stream = io.BytesIO(text)
            stream.info = Message
            return stream

        monkeypatch.setattr("sklearn.datasets._openml.urlopen", urlopen)

    return answer


def test_an_answer_is_read(answered, tmp_path):
    answered({})
    data = openml(str(tmp_path), id=1)
    assert (data.x.shape, data.class_names) == ((4, 1), ("u", "v"))


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_answer_is_refused_in_one_line(kind, answered, tmp_path):
    answered(MALFORMED[kind])
    with pytest.raises(UserError, match="cannot be had from") as caught:
        openml(str(tmp_path), id=1)
    assert "\n" not in str(caught.value)
