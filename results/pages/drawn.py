"""Figures that are there already: a sweep all of whose jobs are reused need not draw them again."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

from normbench import names
from normbench.results.figures import BY_DEFAULT
from normbench.results.pages.writing import Writer
from normbench.results.safe import clean, files
from normbench.results.store import state
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

CODE = Path(str(resources.files("normbench.results")))  # which draws
VOCABULARY = Path(str(names.__file__))  # the one other module that it needs
KINDS = (".png", ".svg", ".gif", ".html")
SUFFIXES = (".py", ".js", ".jinja")
LARGEST = 1 << 28  # bytes of a file
MOST = 2000  # runs whose record is compared; of more it takes as long as to draw
# What a run is told when it is drawn, or by other sweeps.
LATER = (names.DESCRIPTION.column, names.COLOR.column, names.REQUEST.column)


class Known:
    """The figures of a sweep, by what they show.

    That is its jobs, in order, the code that draws, and the names of those that are wanted.
    """

    def __init__(
        self,
        writer: Writer,
        folder: Path,
        parents: Mapping[str, str],
        outcomes: Sequence[Mapping[str, Any]],
        wanted: Sequence[str] = (),
    ) -> None:
        self.writer, self.folder, self.parents = writer, folder, parents
        self.reused = all(outcome["reused"] for outcome in outcomes)
        jobs = [[outcome["experiment"], outcome["run_id"]] for outcome in outcomes]
        self.drawing = [*_code(), *wanted]
        words = json.dumps([jobs, *self.drawing])
        self.digest = hashlib.sha256(words.encode()).hexdigest()

    def files(self, copy: bool) -> dict[str, list[Path]] | None:
        """Return an equal sweep's files, where they are; None where they are not there.

        None, too, where a file is no longer what that sweep drew. copy: they are copied into this
        sweep's folder. Raises nothing: what is not there is drawn.
        """
        if not self.reused:
            return None
        found: dict[str, list[Path]] = {}
        for experiment in self.parents:
            tags = self.writer.tags_of(experiment, names.DRAWN, self.digest)
            if tags is None:
                return None
            try:
                folder = tags.get(names.DRAWN_IN.key) or tags[names.FOLDER.key]
                place, drawn = Path(folder), tags[names.DRAWN_FILES.key]
                if place.parent != self.folder.parent:
                    return None
                here = self.folder if copy else place
                found[experiment] = _copies(place, here, json.loads(drawn))
            except (OSError, KeyError, ValueError, AttributeError):
                return None
        return found

    def remember(self, written: Mapping[str, Sequence[Path]], sweep: Sweep | None = None) -> None:
        """Say on each experiment's sweep run what was drawn. Raises `StoreLostError`.

        sweep: as it was read to be drawn.
        """
        record = _record(sweep, self.drawing) if sweep else ""
        for experiment, parent in self.parents.items():
            files = {file.name: _content(file) for file in written.get(experiment, ())}
            places = {file.parent for file in written.get(experiment, ())} - {self.folder}
            words = json.dumps(files)
            if len(words) < 5000:  # MLflow's limit of a tag
                drawn = {names.DRAWN: self.digest, names.DRAWN_FILES: words}
                drawn |= {names.DRAWN_IN: str(min(places))} if places else {}
                drawn |= {names.DRAWN_FROM: record} if record else {}
                self.writer.tag(parent, {tag.key: text for tag, text in drawn.items()})


def still(sweep: Sweep, folder: Path) -> dict[str, list[Path]] | None:
    """Return a sweep's files in a folder, as its command drew them; None where they must be drawn.

    That is where its record, its figures or the code that draws has changed since.
    """
    rows = as_rows(sweep.of_role(names.SWEEP))
    if sweep.is_query or state.state_of(sweep).phase is not state.Phase.ENDED:
        return None
    record, found = _record(sweep, [*_code(), *BY_DEFAULT]), {}
    for row in rows:
        try:
            if not record or row[names.DRAWN_FROM.column] != record:
                return None
            own = row.get(names.DRAWN_IN.column)
            place = own if isinstance(own, str) else row[names.FOLDER.column]
            drawn = row[names.DRAWN_FILES.column]
            found[row["experiment"]] = _copies(Path(place), folder, json.loads(drawn))
        except (OSError, KeyError, ValueError, TypeError, AttributeError):
            return None
    return found or None


def _record(sweep: Sweep, drawing: Sequence[str]) -> str:
    """Return a digest of what is recorded of a sweep's jobs, and of what draws it.

    drawing: its code, and the names of the figures. Empty for a sweep of many runs.
    """
    if len(sweep.runs) > MOST:
        return ""
    rows = sweep.runs[sweep.runs["role"] != names.SWEEP]
    members = names.membership("").column
    columns = [key for key in sorted(rows) if key not in LATER and not key.startswith(members)]
    table = rows[columns]
    known = table.notna().to_numpy().tolist()
    cells = [
        [(key, repr(value)) for key, value, there in zip(columns, row, mine) if there]
        for row, mine in zip(table.to_numpy(dtype=object).tolist(), known)
    ]
    words = json.dumps([sweep.store, cells, *drawing])
    return hashlib.sha256(words.encode()).hexdigest()


def _code() -> list[str]:
    """Return a digest of each file that draws.

    Any change, were it of a comment, draws again: to see which matter takes longer.
    """
    drawing = [file for file in sorted(CODE.rglob("*")) if file.suffix in SUFFIXES]
    return [_content(file) for file in (*drawing, VOCABULARY)]


def _copies(drawn: Path, folder: Path, names: Mapping[str, str]) -> list[Path]:
    """Return a sweep's figures in a folder, copied from another's, which must be its neighbour.

    names: the files' names, each with the digest of its content. They come from the store, where
    somebody else may have written the name of any file. Raises ValueError where it is no figure of
    such a sweep.
    """
    if drawn.parent != folder.parent:
        raise ValueError(drawn)
    texts = {}
    for name, told in names.items():
        if clean.name(name) != name or Path(name).suffix not in KINDS:
            raise ValueError(name)
        text = texts[folder / name] = files.read_bounded(drawn / name, LARGEST)
        if _digest(text) != told:
            raise ValueError(name)
    for file, text in texts.items() if drawn != folder else ():
        folder.mkdir(exist_ok=True)
        file.write_bytes(text)
    return list(texts)


def remove(folder: Path, tags: Mapping[str, str], others: Collection[Mapping[str, str]]) -> None:
    """Remove what a sweep drew in its folder.

    tags: of the sweep's run; others: of the runs of all other sweeps. A file that is no longer what
    was drawn stays, and so does what others put there; what tags say comes from the store, where
    another may have written.
    """
    shared = {
        name
        for other in others
        if other.get(names.FOLDER.key) == str(folder)
        for name in _digests(other)
    }
    for name, digest in _digests(tags).items():
        if clean.name(name) != name or Path(name).suffix not in KINDS or name in shared:
            continue
        with suppress(OSError):
            if _digest(files.read_bounded(folder / name, LARGEST)) == digest:
                (folder / name).unlink()


def _digests(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the digest of each file that a sweep's tags say it drew, by its name."""
    try:
        return dict(json.loads(tags.get(names.DRAWN_FILES.key, "{}")))
    except (ValueError, TypeError):
        return {}


def _content(file: Path) -> str:
    return _digest(file.read_bytes())


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]
