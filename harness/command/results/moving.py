"""`normbench results export` and `import`: move sweeps from one store to another.

An interrupted import is completed by the same command.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from normbench.command.sweep.progress import Progress
from normbench.datasets.values import UserError
from normbench.recording.store.connection import Store
from normbench.recording.store.writer import Writer
from normbench.recording.transfer.archive import unpacked
from normbench.recording.transfer.exporting import Export, all_sweeps
from normbench.recording.transfer.importing import Contents, Import
from normbench.results.safe import clean
from normbench.results.store import uris
from normbench.results.store.errors import ResultsError

EXPORT_EXAMPLE = "normbench results export SWEEP FILE"


def export_sweeps(store: str, arguments: Sequence[str], all_of_store: bool, overwrite: bool) -> int:
    """Write sweeps into a file, and print its path; return 0.

    Args:
        store: The URI of the store.
        arguments: The ids of the sweeps, then the file; the file alone with `all_of_store`.
        all_of_store: Whether all sweeps of the store are written.
        overwrite: Whether an existing file is replaced.

    Raises:
        ResultsError: The arguments are mistaken, or a sweep cannot be exported.
        UserError: A value is mistaken.
    """
    *sweeps, name = arguments
    if bool(sweeps) == all_of_store:  # both, or neither
        rule = "--all leaves no comparison to name" if all_of_store else "names no comparison"
        raise ResultsError(
            f"export {' '.join(arguments)}: {rule}; write {EXPORT_EXAMPLE}, or --all FILE"
        )
    file = Path(os.path.abspath(name))
    export = Export(store, all_sweeps(store) if all_of_store else sweeps)
    progress = Progress(f"export to {name}", unit="job")
    progress.begin(len(export.jobs))
    counts = export.write(file, overwrite, progress)
    progress.end("done")
    print(f"exported {_describe_counts(counts)}: {file.stat().st_size / 1e6:.3g} MB")
    print(file)
    return 0


def import_sweeps(store: str, artifacts: str | None, name: str) -> int:
    """Write the sweeps of a file into a store, unless it has them; return 0.

    Args:
        store: The URI of the store, which is created if missing.
        artifacts: Where the artifacts of new experiments go; None for `mlartifacts` beside a
            database, or for the place of a server.
        name: The file that `export` wrote.

    Raises:
        ResultsError: The file or the store cannot be used.
        UserError: A value is mistaken.
        StoreLostError: The store does not answer any more.
    """
    database = uris.database(store)
    if artifacts is None and database:
        artifacts = str(database.parent / "mlartifacts")
    with unpacked(Path(name).absolute()) as file:
        contents = Contents(file)
        if database:
            contents.refuse_full(database.parent)
        try:  # the store is created last: a file that is refused leaves nothing behind
            writer = Writer(Store.at(store, artifacts, Path.cwd()))
            done = Import(contents, writer)
        except UserError as error:
            # The store's errors name settings of a comparison; here these are options.
            message = str(error).replace("tracking.uri=", "--store ")
            raise ResultsError(message.replace("tracking.artifacts=", "--artifacts ")) from error
        progress = Progress(f"import of {name}", unit="job")
        progress.begin(len(contents.jobs))
        done.run(progress)
        progress.end("done")
    for old, new in done.new_ids.items():
        print(f"comparison {old} is {new} here: another one has its id")
    present_note = (
        f"; {done.present_jobs} of {len(contents.jobs)} jobs were there"
        if done.present_jobs
        else ""
    )
    print(f"imported {_describe_counts(done.counts)}{present_note}")
    print(f"store      {clean.line(writer.store.safe_uri)}")
    return 0


def _describe_counts(counts: Mapping[str, int]) -> str:
    """Return counts as text, such as `1 sweep, 3 jobs and 40 runs`.

    Args:
        counts: The counts by what is counted, a plural.
    """
    # A single one loses the plural's s.
    texts = [f"{count} {key[:-1] if count == 1 else key}" for key, count in counts.items()]
    return f"{', '.join(texts[:-1])} and {texts[-1]}"
