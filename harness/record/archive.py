"""Comparisons in one file: a zip of their records and folders."""

import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_STORED, BadZipFile, ZipFile

from normbench.results.safe import clean
from normbench.results.store import comparison_files
from normbench.results.store.comparison_files import Comparison, record_file
from normbench.results.store.errors import ResultsError
from normbench.results.store.job_records import MAX_BYTES, JobRecord, written_whole

RECORD_NAME = re.compile(r"records/([0-9a-f]{32})\.npz")
COMPARISON_NAME = re.compile(r"(\w[\w.-]{0,149})/comparison\.json", re.ASCII)


def write(chosen: Sequence[Comparison], file: Path, overwrite: bool) -> str:
    """Write comparisons with their records, figures and reports into a file.

    Args:
        chosen: The comparisons, of one home.
        file: The file.
        overwrite: Whether an existing file is replaced.

    Returns:
        What was written, such as `1 comparison, 3 jobs`.

    Raises:
        ResultsError: The file exists, or it cannot be written.
    """
    if file.exists() and not overwrite:
        raise ResultsError(f"{file}: exists; name another file, or add --overwrite")
    keys = dict.fromkeys(key for comparison in chosen for key in comparison.keys)
    files = [record_file(chosen[0].home, key) for key in keys]
    for comparison in chosen:
        drawn = {name for names in comparison.files.values() for name in names}
        names = [comparison_files.FILE, *sorted(drawn)]
        files += [comparison.folder / name for name in names]
    try:
        with written_whole(file) as draft, ZipFile(draft, "w", ZIP_STORED) as archive:
            for member in filter(Path.is_file, files):
                archive.write(member, f"{member.parent.name}/{member.name}")
    except OSError as error:
        raise ResultsError(f"{file}: cannot be written ({error.strerror or error})") from error
    return _counts(len(chosen), len(keys))


def read(file: Path, home: Path) -> tuple[str, dict[str, str]]:
    """Read the comparisons of a file, and the records that are not there yet.

    Only records and the files of comparisons are taken, by their names; each is read before it
    takes its place. A comparison whose id another one has gets a number behind it.

    Args:
        file: What `write` wrote.
        home: The folder of comparisons and their records.

    Returns:
        What was read, such as `1 comparison, 3 jobs`, and the new ids by the old ones.

    Raises:
        ResultsError: The file is none that `write` wrote, or the folder cannot be written.
    """
    try:
        with ZipFile(file) as archive, TemporaryDirectory() as folder:
            draft = Path(folder)
            names = [info.filename for info in archive.infolist() if info.file_size <= MAX_BYTES]
            records = [match[1] for name in names if (match := RECORD_NAME.fullmatch(name))]
            arrived = [match[1] for name in names if (match := COMPARISON_NAME.fullmatch(name))]
            if not arrived:
                raise ValueError("it holds no comparison")
            new_keys = [key for key in records if not record_file(home, key).exists()]
            for key in new_keys:
                archive.extract(f"records/{key}.npz", draft)
                JobRecord.load(record_file(draft, key))  # raises an error where it is none
                with written_whole(record_file(home, key)) as stream:
                    stream.write(record_file(draft, key).read_bytes())
            new_ids = {}
            for sweep_id in arrived:
                archive.extract(f"{sweep_id}/{comparison_files.FILE}", draft)
                new_id = _place(Comparison.read(draft / sweep_id), home)
                if new_id != sweep_id:
                    new_ids[sweep_id] = new_id
    except (OSError, ValueError, BadZipFile) as error:
        raise ResultsError(f"import {file}: cannot be read ({clean.first_line(error)})") from error
    return _counts(len(arrived), len(new_keys)), new_ids


def _place(comparison: Comparison, home: Path) -> str:
    """Write a comparison into a home, unless it is there, and return its id there."""
    old_id = comparison.id
    # Its figures are drawn here: those of others may be anything. Its copy is not of this folder.
    comparison.files, comparison.figures, comparison.tracking = {}, [], ""
    if comparison.state == comparison_files.RUNNING:
        comparison.state = comparison_files.INTERRUPTED
    for number in count(1):
        comparison.folder = home / (old_id if number == 1 else f"{old_id}-{number}")
        if not comparison.folder.exists():
            comparison.write()
            return comparison.id
        there = Comparison.read(comparison.folder)
        if (there.started, there.command) == (comparison.started, comparison.command):
            return there.id
    raise AssertionError


def _counts(number: int, jobs: int) -> str:
    """Return numbers of comparisons and jobs as text."""
    return f"{number} comparison{'s' * (number != 1)}, {jobs} job{'s' * (jobs != 1)}"
