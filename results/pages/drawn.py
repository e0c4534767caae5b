"""Cache of rendered figures, for sweeps whose jobs are all reused."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

from normbench import names
from normbench.results.figures import NAMES
from normbench.results.pages.writing import Writer
from normbench.results.safe import clean, files
from normbench.results.store import state
from normbench.results.store.rows import as_rows
from normbench.results.store.runs import Sweep

DRAWING_CODE_FOLDER = Path(str(resources.files("normbench.results")))  # the code that draws
VOCABULARY = Path(str(names.__file__))  # the only other module that figures depend on
FIGURE_SUFFIXES = (".png", ".svg", ".gif", ".html")
CODE_SUFFIXES = (".py", ".js", ".jinja")
MAX_FILE_BYTES = 1 << 28  # of a figure
MAX_TAG_LENGTH = 5000  # characters, fewer than MLflow keeps; a longer list is not recorded
MAX_RUNS = 2000  # comparing the records of more runs takes as long as drawing
# Columns that change when a sweep is drawn, or by other sweeps.
CHANGING_COLUMNS = (names.DESCRIPTION.column, names.COLOR.column, names.REQUEST.column)


class RecordedFigures:
    """The figures that another sweep drew of the same jobs, with the same code.

    Args:
        writer: The writer of MLflow.
        folder: The folder of this sweep.
        parents: The id of the sweep run by experiment.
        outcomes: The jobs in order, each with `experiment`, `run_id` and `reused`.
        figure_names: The names of the requested figures.
    """

    def __init__(
        self,
        writer: Writer,
        folder: Path,
        parents: Mapping[str, str],
        outcomes: Sequence[Mapping[str, Any]],
        figure_names: Sequence[str] = (),
    ) -> None:
        self.writer, self.folder, self.parents = writer, folder, parents
        self.reused = all(outcome["reused"] for outcome in outcomes)
        jobs = [[outcome["experiment"], outcome["run_id"]] for outcome in outcomes]
        self.drawing = [*_code_digests(), *figure_names]
        identity = json.dumps([jobs, *self.drawing])
        # Sweeps of the same jobs, code and figures have equal digests.
        self.digest = hashlib.sha256(identity.encode()).hexdigest()

    def files(self, copy: bool) -> dict[str, list[Path]] | None:
        """Return the files of an equal sweep, in each experiment the latest one.

        Args:
            copy: Whether the files are copied into this sweep's folder, or used where they are.

        Returns:
            The files by experiment; None where one is missing or was changed since, so that the
            figures must be drawn.
        """
        if not self.reused:  # no other sweep has drawn a new job
            return None
        files_by_experiment: dict[str, list[Path]] = {}
        # Tags come from the store and may be damaged; any error means that figures must be drawn.
        for experiment in self.parents:
            tags = self.writer.tags_of_sweep_with(experiment, names.DRAWN, self.digest)
            if tags is None:
                return None
            try:
                folder = tags.get(names.DRAWN_IN.key) or tags[names.FOLDER.key]
                source_folder, digests = Path(folder), tags[names.DRAWN_FILES.key]
                # Files elsewhere may be anybody's; only a folder beside this sweep's is trusted.
                if source_folder.parent != self.folder.parent:
                    return None
                target_folder = self.folder if copy else source_folder
                files_by_experiment[experiment] = _copy_figures(
                    source_folder, target_folder, json.loads(digests)
                )
            except (OSError, KeyError, ValueError, AttributeError):
                return None
        return files_by_experiment

    def tag_runs(self, written: Mapping[str, Sequence[Path]], sweep: Sweep | None = None) -> None:
        """Tag each experiment's sweep run with its figures.

        Args:
            written: The figures' files by experiment.
            sweep: The runs from which they were drawn.

        Raises:
            StoreLostError: The store is out of reach.
        """
        record = _record(sweep, self.drawing) if sweep else ""
        for experiment, parent in self.parents.items():
            files = {file.name: _digest_of_file(file) for file in written.get(experiment, ())}
            # Reused figures may lie in the folder of the sweep that drew them: one folder for all.
            other_folders = {file.parent for file in written.get(experiment, ())} - {self.folder}
            # A list of figures that is too long is not recorded; they are then drawn again.
            serialized = json.dumps(files)
            if len(serialized) < MAX_TAG_LENGTH:
                tags = {names.DRAWN: self.digest, names.DRAWN_FILES: serialized}
                tags |= {names.DRAWN_IN: str(min(other_folders))} if other_folders else {}
                tags |= {names.DRAWN_FROM: record} if record else {}
                self.writer.tag(parent, {tag.key: text for tag, text in tags.items()})


def current_figures(sweep: Sweep, folder: Path) -> dict[str, list[Path]] | None:
    """Return the figures that a sweep's command drew, copied into a folder.

    Args:
        sweep: The runs, as they are recorded now.
        folder: The folder, which must have the same parent as the sweep's folder.

    Returns:
        The files by experiment; None where the record, a figure or the code that draws has changed
        since, so that the figures must be drawn.
    """
    rows = as_rows(sweep.of_role(names.SWEEP))
    if sweep.is_query or state.state_of(sweep).phase is not state.Phase.ENDED:
        return None
    record, files_by_experiment = _record(sweep, [*_code_digests(), *NAMES]), {}
    for row in rows:
        try:
            # `record` is empty for too many runs.
            if not record or row[names.DRAWN_FROM.column] != record:
                return None
            shared_folder = row.get(names.DRAWN_IN.column)
            source_folder = (
                shared_folder if isinstance(shared_folder, str) else row[names.FOLDER.column]
            )
            digests = row[names.DRAWN_FILES.column]
            files_by_experiment[row["experiment"]] = _copy_figures(
                Path(source_folder), folder, json.loads(digests)
            )
        except (OSError, KeyError, ValueError, TypeError, AttributeError):
            return None
    return files_by_experiment or None


def _record(sweep: Sweep, drawing: Sequence[str]) -> str:
    """Return a digest of the record of a sweep's jobs and of what draws it.

    Args:
        sweep: The runs.
        drawing: The digests of the code, and the names of the figures.

    Returns:
        The digest; empty for more than `MAX_RUNS` runs.
    """
    if len(sweep.runs) > MAX_RUNS:
        return ""
    rows = sweep.runs[sweep.runs["role"] != names.SWEEP]
    # Columns of memberships change when another sweep reuses a job.
    members = names.membership("").column
    columns = [
        key for key in sorted(rows) if key not in CHANGING_COLUMNS and not key.startswith(members)
    ]
    table = rows[columns]
    recorded_mask = table.notna().to_numpy().tolist()
    cells = [
        [
            (key, repr(value))
            for key, value, is_recorded in zip(columns, row, row_mask)
            if is_recorded
        ]
        for row, row_mask in zip(table.to_numpy(dtype=object).tolist(), recorded_mask)
    ]
    identity = json.dumps([sweep.store, cells, *drawing])
    return hashlib.sha256(identity.encode()).hexdigest()


def _code_digests() -> list[str]:
    """Return a digest of each file of code that draws.

    Any change causes a new drawing, even that of a comment: to find out whether a change matters
    would take longer.
    """
    code_files = [
        file for file in sorted(DRAWING_CODE_FOLDER.rglob("*")) if file.suffix in CODE_SUFFIXES
    ]
    return [_digest_of_file(file) for file in (*code_files, VOCABULARY)]


def _copy_figures(source_folder: Path, folder: Path, digests: Mapping[str, str]) -> list[Path]:
    """Copy a sweep's figures into a folder, unless they are there, and return the files.

    Nothing is copied unless all files are unchanged.

    Args:
        source_folder: The folder of the figures, which must have the same parent as `folder`.
        folder: The folder into which they are copied; the same one copies nothing.
        digests: The digest of each file by its name. The names come from the store, so they are not
            trusted to be those of figures.

    Raises:
        ValueError: The parents differ, or a file is no figure or was changed since.
        OSError: A file cannot be read or written.
    """
    if source_folder.parent != folder.parent:
        raise ValueError(source_folder)
    bytes_by_file = {}
    for name, digest in digests.items():
        if clean.name(name) != name or Path(name).suffix not in FIGURE_SUFFIXES:
            raise ValueError(name)
        figure_bytes = bytes_by_file[folder / name] = files.read_bounded(
            source_folder / name, MAX_FILE_BYTES
        )
        if _digest(figure_bytes) != digest:
            raise ValueError(name)
    if source_folder != folder:
        for file, figure_bytes in bytes_by_file.items():
            folder.mkdir(exist_ok=True)
            file.write_bytes(figure_bytes)
    return list(bytes_by_file)


def remove(
    folder: Path, tags: Mapping[str, str], tags_of_other_sweeps: Collection[Mapping[str, str]]
) -> None:
    """Remove the figures of a sweep from its folder.

    Files that were changed since, and files of other sweeps, are kept. The tags come from a store
    that others may write to, so they are not trusted.

    Args:
        folder: The folder of the sweep.
        tags: The tags of the sweep's run.
        tags_of_other_sweeps: The tags of the runs of all other sweeps.
    """
    shared_names = {
        name
        for other_tags in tags_of_other_sweeps
        if other_tags.get(names.FOLDER.key) == str(folder)
        for name in _figure_digests(other_tags)
    }
    for name, digest in _figure_digests(tags).items():
        is_figure = clean.name(name) == name and Path(name).suffix in FIGURE_SUFFIXES
        if not is_figure or name in shared_names:
            continue
        with suppress(OSError):
            if _digest(files.read_bounded(folder / name, MAX_FILE_BYTES)) == digest:
                (folder / name).unlink()


def _figure_digests(tags: Mapping[str, str]) -> dict[str, str]:
    """Return the digest of each figure's file, by its name, from the tags of a sweep's run.

    The result is empty where the tag is missing or is no JSON of a mapping.
    """
    try:
        digests = dict(json.loads(tags.get(names.DRAWN_FILES.key, "{}")))
    except (ValueError, TypeError, RecursionError):
        return {}
    return {name: digest for name, digest in digests.items() if isinstance(name, str)}


def _digest_of_file(file: Path) -> str:
    """Return the digest of a file."""
    return _digest(file.read_bytes())


def _digest(content: bytes) -> str:
    """Return a digest of bytes, cut to 16 digits so that a tag holds many."""
    return hashlib.sha256(content).hexdigest()[:16]
