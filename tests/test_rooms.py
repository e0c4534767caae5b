"""The arrows between the rooms: who may import whom."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("costs", "optimizers", "datasets", "harness", "results")
NUMPY = {"numpy"}
# Project rooms and libraries that each room may import; None: any library.
MAY = {
    "costs": (set(), NUMPY | {"autograd", "scipy"}),
    "optimizers": (set(), NUMPY),
    "datasets": (set(), NUMPY | {"sklearn", "pooch", "pandas", "requests", "scipy", "tqdm"}),
    "harness/normalizers": ({"harness.normalizers"}, NUMPY | {"scipy", "sklearn"}),
    "harness": ({"costs", "optimizers", "datasets", "results"}, None),
    "results": (set(), None),
}
KNOW_HYDRA = {f"harness/{name}.py" for name in ("__main__", "config", "errors", "job", "sweep")}
FILES = sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.py"))


def imported(file):
    """Yield the dotted names that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            yield node.module


def room_of(name):
    return max((room for room in MAY if (name + "/").startswith(room + "/")), key=len)


def breaches(file, relative):
    room = room_of(relative)
    rooms, libraries = MAY[room]
    for name in imported(file):
        top = name.split(".")[0]
        if top in ROOMS:
            own = (name.replace(".", "/") + "/").startswith(room + "/")
            if not own and top not in rooms and not any(name.startswith(r) for r in rooms):
                yield f"{relative} imports {name}"
        elif libraries is not None and top not in libraries | set(stdlib()):
            yield f"{relative} imports {name}"
        if top in ("hydra", "hydra_plugins") and relative not in KNOW_HYDRA:
            yield f"{relative} knows Hydra"


def stdlib():
    import sys

    return sys.stdlib_module_names


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_file_imports_only_what_its_room_may(file):
    assert list(breaches(file, str(file.relative_to(ROOT)))) == []


def test_a_forbidden_import_is_seen(tmp_path):
    file = tmp_path / "softmax.py"
    file.write_text("import harness.descent\nimport sklearn\nfrom hydra import main\n")
    assert len(list(breaches(file, "costs/softmax.py"))) == 4


def test_mlflow_is_written_in_one_place_and_read_in_one():
    knowing = {
        str(file.relative_to(ROOT))
        for file in FILES
        if any(name.split(".")[0] == "mlflow" for name in imported(file))
    }
    assert knowing <= {
        "harness/store.py",
        "harness/tracking.py",
        "results/runs.py",
        "results/dashboard.py",
    }
