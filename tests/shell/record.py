"""What a scene's commands print, record, draw and leave, as plain values."""

import json
import re
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from normbench.results.store.job_records import JobRecord, RunRecord
from tests import forks
from tests.shell.scenes import SCENES, Scene

PATIENCE = 300  # seconds that a command may take
MASKS = (
    (r"\d{4}-\d\d-\d\d[_T ]\d\d[-:]\d\d[-:]\d\d(?:[-.]\d+)?(?:-\d+)?", "<time>"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d(?: UTC)?", "<time>"),
    (r"(?<![.\w])(?=\d*[a-f])[0-9a-f]{16,64}\b", "<id>"),
    (r"fingerprint [0-9a-f]+", "fingerprint <id>"),
    (r"/\.jobs\.\d+$", "/.jobs.<user>"),
    (r"\b\d+(?:\.\d+)?(?: (?:ms|s|seconds|minutes))\b", "<seconds>"),
    (r"\b\d+(?:\.\d+)? [KMG]?B\b", "<size>"),
    (r"(?<![.\d])\d+\.\d+\.\d+(?![.\d])", "<version>"),
    (r"openblas .*?threads?", "<kernels>"),
    (r"0x[0-9a-f]+", "<address>"),
)
PROGRESS = re.compile(r".*so far$|^job \d+ of \d+(?!.*: (done|failed|reused))")  # as seconds pass
# Tags that tell one time, machine, version or folder from another.
OWN_TAGS = re.compile(
    r"mlflow\.(source|user|sharedViewState|parentRunId)|version\.|host$|pid$|blas$|git_dirty$|"
    r"drawn|role$|mlflow.runName|fingerprint$|descent$|grid_descent$|request$|folder$|job$|sweep"
)
# Headings of columns of seconds, or of what is computed from seconds.
TIMED = re.compile(r"\bseconds\b|_seconds|^fit$|^an iteration$|^fit in iterations$")
BY_SECONDS = "by_seconds"  # the folder of figures over seconds, which are not compared
ROUNDING = "final/steps_decided_by_rounding"


def empty_folder() -> TemporaryDirectory[str]:
    """Return an empty folder whose path has the same length everywhere: lines are wrapped by it."""
    return TemporaryDirectory(prefix="shell-", dir="/tmp")


def play(name: str, folder: Path) -> dict[str, Any]:
    """Run the commands of a scene in an empty folder, and return what is seen of them.

    Args:
        name: The name of a scene.
        folder: An empty folder, whose folder `work` the commands run in.
    """
    scene = SCENES[name]
    work = folder / "work"
    for file, text in scene.files.items():
        (work / file).parent.mkdir(parents=True, exist_ok=True)
        (work / file).write_text(text)
    work.mkdir(exist_ok=True)
    if scene.prepare:
        scene.prepare(work)
    environment = forks.user_environment(HOME=str(folder), COLUMNS="120")
    mask = Mask(folder)
    commands = []
    for command in scene.commands:
        began = time.monotonic()
        ended = _run(scene, command, work, environment)
        print(f"{name}: {time.monotonic() - began:5.1f} s  {command[:80]}", file=sys.stderr)
        messages = mask.lines(ended.stderr)
        commands.append(
            {
                "command": command,
                "code": ended.returncode,
                "output": mask.lines(ended.stdout),
                "messages": sorted(messages) if scene.processes else messages,
            }
        )
    files = sorted(file for file in work.rglob("*") if file.is_file())
    files = [file for file in files if "mlartifacts" not in file.parts]
    drawn = [file for file in files if BY_SECONDS not in file.parts]
    homes = sorted({file.parent for file in files if file.suffix == ".npz"})
    homes = [home for home in homes if home.name == "records"]
    return {
        "kernels": kernels(),
        "commands": commands,
        "records": {mask(str(home.relative_to(work))): _records(home, mask) for home in homes},
        "files": dict(Counter(mask(str(file.relative_to(work))) for file in files)),
        "pictures": _by_name(drawn, ".png", work, mask, picture),
        "drawings": _by_name(drawn, ".svg", work, mask, lambda file: _drawing(file, mask)),
        "reports": _by_name(drawn, ".html", work, mask, lambda file: _report(file, mask)),
    }


def kernels() -> str:
    """Return the kernels of linear algebra that NumPy has on this processor."""
    infos = threadpool_info()
    return " ".join(sorted({info.get("architecture", "-") for info in infos} - {"-"}))


class Mask:
    """Replaces what differs from run to run: times, identifiers, folders, sizes and versions."""

    def __init__(self, folder: Path) -> None:
        """Take the folder of a scene."""
        self._folders = (str(folder / "work"), "<work>"), (str(folder), "<home>")

    def __call__(self, text: str) -> str:
        """Return a text without what differs."""
        for folder, word in self._folders:
            text = text.replace(folder, word)
        for pattern, word in MASKS:
            text = re.sub(pattern, word, text)
        return text

    def lines(self, text: str) -> list[str]:
        """Return the lines of a text without what differs, and without columns of seconds."""
        lines = [line.rstrip() for line in self(text).splitlines()]
        return list(_without_seconds(line for line in lines if not PROGRESS.match(line)))


def _without_seconds(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of tables, with `#` in the columns that a heading calls seconds."""
    columns: list[int] = []
    for line in lines:
        cells = re.split(r"(\s{2,}|\s*[|&]\s*|,(?=\S))", line)
        timed = [number for number, cell in enumerate(cells) if TIMED.search(cell)]
        if timed and len(cells) > 4:
            columns = [number - len(cells) for number in timed]
        elif len(cells) < 4:
            columns = columns if line.startswith("\\") else []  # LaTeX's rules
        else:
            for column in columns:
                if -column <= len(cells) and re.fullmatch(r"[-<>=~\d.e+]+ ?\\*", cells[column]):
                    cells[column] = "#"
            line = "".join(cells) if columns else line
        yield re.sub(r"\s{2,}(?=#)", "  ", line)


def _run(scene: Scene, command: str, work: Path, environment: Mapping[str, str]) -> Any:
    """Return how a command of a scene ended."""
    words = shlex.split(command.format(last=_newest(work)))
    if words[:1] == ["python"]:
        program = (work / words[1]).read_text()
        return forks.run(words[2:], work, environment, patience=PATIENCE, program=program)
    if not scene.copied and words[:1] != ["results"]:
        words.append("tracking=none")
    if scene.processes:
        return subprocess.run(
            [sys.executable, "-m", "normbench", *words],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    return forks.run(words, work, environment, patience=PATIENCE)


def _newest(work: Path) -> str:
    """Return the identifier of the newest comparison, or an empty text."""
    names = sorted(path.parent.name for path in work.glob("outputs/*/comparison.json"))
    return names[-1] if names else ""


def _by_name(files: list[Path], suffix: str, work: Path, mask: Mask, read: Any) -> dict[str, Any]:
    """Return what `read` returns of the files of a kind, in lists by their masked names."""
    values: dict[str, Any] = {}
    for file in files:
        if file.suffix == suffix:
            values.setdefault(mask(str(file.relative_to(work))), []).append(read(file))
    return values


def picture(file: Path) -> dict[str, Any]:
    """Return the size of a picture, and the greys of 16 rows of 24 blocks, two digits each."""
    from PIL import Image

    with Image.open(file) as image:
        grey = image.convert("L")
    blocks = np.asarray(grey.resize((24, 16), Image.Resampling.BOX))
    return {"size": list(grey.size), "greys": [row.tobytes().hex() for row in blocks]}


def _drawing(file: Path, mask: Mask) -> dict[str, Any]:
    """Return the texts of an SVG and how many paths and uses it has."""
    text = file.read_text()
    texts = re.findall(r">([^<>\n]+)</(?:text|tspan)>", text)
    counts = {"paths": text.count("<path"), "uses": text.count("<use")}
    return {"texts": sorted(mask(words) for words in texts), **counts}


def _report(file: Path, mask: Mask) -> dict[str, Any]:
    """Return the prose of a page, the numbers of its tables, and what its explorer is given."""
    text = file.read_text()
    data = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.S)
    text = re.sub(r"<(script|style|svg).*?</\1>", "", text, flags=re.S)
    tables = re.findall(r"<table.*?</table>", text, re.S)
    prose = re.sub(r"<[^>]+>", "\n", re.sub(r"<table.*?</table>", "", text, flags=re.S))
    return {
        "prose": [line.strip() for line in mask.lines(prose) if line.count(" ") > 2],
        "tables": [_table(table, mask) for table in tables],
        "data": [dict(_leaves(json.loads(part))) for part in data],
    }


def _table(table: str, mask: Mask) -> dict[str, Any]:
    """Return the words of a table of a page in order, and the moments of its numbers."""
    rows = [
        [mask(re.sub(r"<[^>]+>", " ", cell)).strip() for cell in re.split(r"<t[dh][^>]*>", row)[1:]]
        for row in re.split(r"<tr[^>]*>", table)[1:]
    ]
    timed = {n for row in rows[:2] for n, cell in enumerate(row) if "second" in cell}
    cells = [
        cell for row in rows for number, cell in enumerate(row) if number not in timed and cell
    ]
    numbers = [float(cell) for cell in cells if re.fullmatch(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", cell)]
    words = [cell for cell in cells if re.search(r"[A-Za-z]{2}", cell)]
    return {"words": " | ".join(words), "numbers": moments(np.array(numbers))}


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the paths of a JSON value, with its texts and the moments of its lists of numbers."""
    if isinstance(value, dict):
        for key, below in value.items():
            if key not in ("fit", "step", "seconds"):
                yield from _leaves(below, f"{path}/{key}")
    elif not isinstance(value, list):
        yield path, value
    elif numbers := list(_numbers(value)):
        yield path, moments(np.array(numbers, float))
    else:
        for number, item in enumerate(value):
            yield from _leaves(item, f"{path}/{number}")


def _numbers(value: Any) -> Iterator[float]:
    """Yield the numbers of lists within lists."""
    for item in value if isinstance(value, list) else []:
        if isinstance(item, int | float):
            yield item
        else:
            yield from _numbers(item)


def moments(values: "np.ndarray[Any, Any]") -> list[float]:
    """Return what tells an array from another: its size, and two sums of its finite entries.

    The sums are over asinh(1e6 x), which weighs orders of magnitude alike: of magnitudes, and of
    entries times the cosine of their place.
    """
    entries = np.asarray(values, float).ravel()
    is_finite = np.isfinite(entries)
    scaled = np.where(is_finite, np.arcsinh(1e6 * np.where(is_finite, entries, 0.0)), 0.0)
    ordered = float(scaled @ np.cos(np.arange(scaled.size)))
    return [float(is_finite.sum()), _rounded(np.abs(scaled).sum()), _rounded(ordered)]


def _rounded(number: float) -> float:
    """Return a number with nine digits."""
    return float(f"{number:.9g}")


def _records(home: Path, mask: Mask) -> dict[str, Any]:
    """Return the jobs of a folder of records, by experiment and role."""
    runs: dict[str, dict[str, list[Any]]] = {}
    for file in sorted(home.glob("*.npz")):
        job = JobRecord.load(file)
        roles = runs.setdefault(mask(job.experiment), {"scheme": [], "step": []})
        entry = _entry(job.scheme, mask) | {"params": _masked(job.params, mask)}
        entry["status"] = "FAILED" if job.failure else "FINISHED"
        entry["arrays"] = {} if _is_by_rounding(job.scheme) else _arrays(job)
        roles["scheme"].append((mask(job.scheme.name), entry))
        for step in job.steps:
            roles["step"].append((mask(step.name), _entry(step, mask) | {"params": {}}))
    recorded: dict[str, Any] = {}
    for experiment, roles in sorted(runs.items()):
        recorded[experiment] = {}
        for role, entries in roles.items():
            by_name: dict[str, Any] = {}
            for name, entry in sorted(entries, key=_order):
                same = sum(other.split(" #")[0] == name for other in by_name)
                by_name[f"{name} #{same}" if same else name] = entry
            shared = {kind: _shared(by_name, kind) for kind in ("params", "tags")}
            if by_name:
                recorded[experiment][role] = {**shared, "runs": by_name}
    return recorded


def _order(run: tuple[str, dict[str, Any]]) -> tuple[str, ...]:
    """Return what a run is sorted by: first what rounding does not change."""
    name, entry = run
    parts = (entry["params"], entry["tags"], entry)
    return (name, *(json.dumps(part, sort_keys=True) for part in parts))


def _is_by_rounding(run: RunRecord) -> bool:
    """Return whether rounding decides how a run ends."""
    count = run.series.get(ROUNDING, {0: 0})[0]
    return bool(count) or "rounding" in run.tags.get("verdict", "")


def _masked(texts: Mapping[str, str], mask: Mask) -> dict[str, Any]:
    """Return texts by key, without what differs; those of several lines as lists."""
    lines = {key: mask.lines(text) for key, text in texts.items() if not OWN_TAGS.match(key)}
    return {key: text[0] if len(text) == 1 else text for key, text in lines.items()}


def _entry(run: RunRecord, mask: Mask) -> dict[str, Any]:
    """Return the tags and metrics of a run, and the iterations of its history."""
    metrics = {
        key: _rounded(value)
        for key, value, _ in run.metrics
        if "second" not in key
        and not key.startswith("time/")
        and (key.startswith("theory/") or not _is_by_rounding(run))
    }
    steps = np.array([*run.series.get("train/cost", {})])
    entry = {"tags": _masked(run.tags, mask), "metrics": metrics}
    return entry | {"steps of train/cost": moments(steps)}


def _arrays(job: JobRecord) -> dict[str, Any]:
    """Return the moments of the arrays of a job, by record, name and shape."""
    arrays: dict[str, Any] = {}
    for record in job.arrays:
        for name, array in job.arrays[record].items():
            if array.dtype.kind in "biuf" and "second" not in name:
                arrays[f"arrays/{record}.npz: {name} {array.shape}"] = moments(array)
    return arrays


def _shared(runs: dict[str, Any], kind: str) -> dict[str, str]:
    """Take the params or tags that all runs with any have alike out of them, and return them."""
    entries = [entry[kind] for entry in runs.values() if entry[kind]]
    shared = {
        key: text
        for key, text in (entries[0] if entries else {}).items()
        if all(entry.get(key) == text for entry in entries)
    }
    for entry in entries:
        for key in shared:
            del entry[key]
    return shared
