"""Figures that are there already: a sweep all of whose jobs are reused need not draw them again."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

from normbench import names
from normbench.results.pages.writing import Writer
from normbench.results.safe import clean, files

CODE = Path(str(resources.files("normbench.results")))  # which draws
VOCABULARY = Path(str(names.__file__))  # the one other module that it needs
KINDS = (".png", ".svg", ".gif", ".html")
SUFFIXES = (".py", ".js", ".jinja")
LARGEST = 1 << 28  # bytes of a file


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
        # Any change, were it of a comment, draws again: to see which matter takes longer.
        drawing = [file for file in sorted(CODE.rglob("*")) if file.suffix in SUFFIXES]
        code = [_content(file) for file in (*drawing, VOCABULARY)]
        words = json.dumps([jobs, *code, *wanted])
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
                folder, drawn = tags[names.FOLDER.key], tags[names.DRAWN_FILES.key]
                found[experiment] = self._checked(Path(folder), json.loads(drawn), copy)
            except (OSError, KeyError, ValueError, AttributeError):
                return None
        return found

    def _checked(self, drawn: Path, names: Mapping[str, str], copy: bool) -> list[Path]:
        """Return figures of another sweep's folder, which must be this one's neighbour.

        names: the files' names, each with the digest of its content. They come from the store,
        where somebody else may have written the name of any file. Raises ValueError where it is no
        figure of such a sweep.
        """
        if drawn.parent != self.folder.parent:
            raise ValueError(drawn)
        texts = {}
        for name, told in names.items():
            if clean.name(name) != name or Path(name).suffix not in KINDS:
                raise ValueError(name)
            text = texts[name] = files.content(drawn / name, LARGEST)
            if _digest(text) != told:
                raise ValueError(name)
        for name, text in texts.items() if copy else ():
            (self.folder / name).write_bytes(text)
        return [(self.folder if copy else drawn) / name for name in texts]

    def remember(self, written: Mapping[str, Sequence[Path]]) -> None:
        """Say on each experiment's sweep run what was drawn. Raises `StoreLostError`."""
        for experiment, parent in self.parents.items():
            files = {file.name: _content(file) for file in written.get(experiment, ())}
            words = json.dumps(files)
            if len(words) < 5000:  # MLflow's limit of a tag
                self.writer.tag(
                    parent, {names.DRAWN.key: self.digest, names.DRAWN_FILES.key: words}
                )


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
            if _digest(files.content(folder / name, LARGEST)) == digest:
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
