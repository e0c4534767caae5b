"""One job of a sweep: taken from what is recorded, or run and recorded, whatever becomes of it."""

import json
import os
import signal
import threading
import time
from contextlib import ExitStack
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from normbench import names
from normbench.command.config import compose as configs
from normbench.command.config import resolvers
from normbench.command.sweep import task
from normbench.results.safe import clean

if TYPE_CHECKING:
    from normbench.command.sweep.progress import Progress
    from normbench.job import Shared
    from normbench.recording.store.records import Place
    from normbench.recording.store.writer import Writer
    from normbench.results.store.job_records import JobRecord

WATCH = 1.0  # seconds between two looks at whether the sweep's own process is there


def run_job(config: DictConfig) -> dict[str, Any]:
    """Run and record one job, or take it from what is recorded; return what became of it.

    `failure` is empty, `user` (a mistake), `bug`, or `store` (not written, with its `reason`);
    `run_id` and `experiment` are those of the scheme's run; `reused` says that it was there.
    """
    from normbench.command.sweep.progress import Progress
    from normbench.recording.resume.leftovers import LEDGER

    hydra = HydraConfig.get()
    clean.guard(*hydra.overrides.task)  # a launcher's process of its own knows nothing of it
    resolvers.register()
    folder = Path(hydra.sweep.dir).absolute()
    outcome = {"experiment": configs.experiment_name(config), "reused": False}
    try:
        ledger = _ledger(folder / LEDGER)
    except OSError:
        reason = f"hydra.sweep.dir={folder}: was removed while the sweep was at work"
        return outcome | {"failure": "store", "reason": reason, "run_id": ""}
    _stop_orphan(folder, ledger)
    title = f"job {hydra.job.num + 1} of {ledger['jobs']}: {configs.title(config)}"
    progress = Progress(title, bar=os.getpid() == ledger["process"])
    try:
        writer = configs.writer(config)
    except ValueError as error:  # the sweep's own process could open it
        progress.end("not run: the store cannot be opened")
        return outcome | {"failure": "store", "reason": str(error), "run_id": ""}
    place = _place(config, writer, ledger)
    with ExitStack() as others_wait:
        known, failure, record = _result(config, writer, place, progress, others_wait)
        if record is None:
            _let_go(place, folder)
            progress.end("reused")
            return outcome | {"failure": "", "run_id": known, "reused": True}
        told = _write(writer, place, record, folder, ledger)
    reason = told.get("reason") or record.scheme.tags.get(names.REASON.key, "")
    failure = told.get("failure", failure)
    if not failure:
        _let_go(place, folder)
    progress.end(f"failed: {reason}" if failure else "done")
    return outcome | {"failure": failure} | told


def _let_go(place: "Place", folder: Path) -> None:
    """Remove what is kept of a descent that is recorded."""
    from normbench.recording.resume import checkpoints

    checkpoints.remove(folder.parent, place.tags[names.DESCENT.key])


@lru_cache(maxsize=1)
def _ledger(file: Path) -> dict[str, Any]:
    """Return what a sweep's jobs have to know; read once a process, it may be removed."""
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def _place(config: DictConfig, writer: "Writer", ledger: dict[str, Any]) -> "Place":
    """Return where a job's runs belong, and the tags that they share."""
    from normbench.recording.store.records import Place

    experiment, sweep_id = configs.experiment_name(config), ledger["sweep_id"]
    tags = {
        **configs.tags(config),
        **task.place(),
        names.SWEEP_ID.key: sweep_id,
        names.JOB.key: f"{sweep_id}/{HydraConfig.get().job.num}",
        names.membership(sweep_id).key: str(HydraConfig.get().job.num),
    }
    parent = ledger["parents"][experiment]
    return Place(writer.store.shown, experiment, parent, configs.parameters(config), tags)


def _result(
    config: DictConfig,
    writer: "Writer",
    place: "Place",
    progress: "Progress",
    others_wait: ExitStack,
) -> tuple[str, str, "JobRecord | None"]:
    """Return the id of a recorded job that holds this one, the kind of failure, the new record.

    While others_wait is open, a job of the same descent in another process waits, to take this
    one's result.
    """
    from normbench.command.sweep.progress import reading
    from normbench.datasets import UserError
    from normbench.job import run
    from normbench.recording.resume import checkpoints, leftovers
    from normbench.recording.store import records

    try:
        job = configs.prepare(config)
        configs.settle_start(config, place.params, place.tags, job)
        place.tags.update(configs.identity(place.params, job))
        folders = Path(HydraConfig.get().sweep.dir).absolute().parent
        descent = place.tags[names.DESCENT.key]
        if config.reuse:
            others_wait.enter_context(leftovers.only_one(descent, folders))
            known, judged = _recorded(writer, place)
            if known or judged:
                return known, "", judged
        progress.begin(job.settings.iterations, reading(job.dataset))
        every = config.checkpoint
        file = None if every is None else checkpoints.DescentFile(folders, descent, every)
        outcome = run(job, progress, _shared(), file)
        return "", "", records.of_outcome(place, job.dataset, outcome)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's code may raise anything, and leave by sys.exit
        failure = "user" if isinstance(error, (UserError, MemoryError)) else "bug"
        return "", failure, records.of_failure(place, error)


@cache
def _shared() -> "Shared":
    """Return what this process's jobs know of their data sets."""
    from normbench.job import Shared

    return Shared()


def _recorded(writer: "Writer", place: "Place") -> tuple[str, "JobRecord | None"]:
    """Return the id of a finished job that holds this one, now of the sweep, or else this one.

    That is: from a descent that is recorded, judged by the job's own rules. Neither without a
    store: what the job finds is kept on disk.
    """
    from normbench.recording.reuse import lookup as reuse
    from normbench.recording.store.connection import StoreLostError
    from normbench.results.store.errors import ResultsError

    try:
        found = reuse.of_descent(writer, place)
        known = reuse.known(found, place)
        if known:
            writer.adopt(known, place.tags[names.JOB.key])
            return known, None
        return "", reuse.judged_again(writer, found, place)
    except (StoreLostError, ResultsError):  # or with arrays that are gone
        return "", None


def _write(
    writer: "Writer", place: "Place", record: "JobRecord", folder: Path, ledger: dict[str, Any]
) -> dict[str, Any]:
    """Write a job's record; it waits on disk until all of it was read back from the store."""
    from normbench.recording.resume.leftovers import PENDING, REFUSED
    from normbench.recording.store import records
    from normbench.recording.store.connection import StoreLostError

    number = record.scheme.tags[names.JOB.key].rpartition("/")[2]
    file = folder / PENDING / f"{number}.npz"
    _save(record, file, ledger)
    _stop_orphan(folder, ledger)
    told: dict[str, Any] = {}
    try:
        try:
            run_id = writer.write(record)
        except (StoreLostError, OSError):
            raise
        except Exception as error:  # refused: the job failed, and says why; its record stays
            failed = records.of_failure(place, error)
            told = {"failure": "bug", "reason": failed.scheme.tags[names.REASON.key]}
            run_id = writer.write(failed)
            if file.is_file():
                file.replace(file.with_suffix(REFUSED))
    except (StoreLostError, OSError) as error:
        if not file.is_file():
            _save(record, file, ledger)  # a full disk may have room again
        return {"failure": "store", "reason": str(error), "run_id": ""}
    file.unlink(missing_ok=True)
    return told | {"run_id": run_id}


def _save(record: "JobRecord", file: Path, ledger: dict[str, Any]) -> None:
    """Keep a record on disk, where there is room for it."""
    from normbench.recording.resume.leftovers import LEDGER

    try:
        record.save(file)
        about = file.parent.parent / LEDGER
        if not about.is_file():  # removed with its folder; without it, no command would look here
            about.write_text(json.dumps(ledger))
    except OSError:
        file.with_suffix(".draft").unlink(missing_ok=True)


def _stop_orphan(folder: Path, ledger: dict[str, Any]) -> None:
    """End a launcher's process whose sweep was killed: the next command does its job again.

    What it has kept on disk by then, the next command writes.
    """
    from normbench.results.store.owner import lives

    if os.getpid() == ledger["process"]:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the sweep's, which ends its processes
    if os.getppid() == ledger["process"]:
        _watch(ledger["process"])
    elif not lives(folder):
        os._exit(1)  # an exception would only bring the next job


@lru_cache(maxsize=1)
def _watch(parent: int) -> None:
    """End this process soon after the one that started it: joblib's would wait for jobs for ever.

    What it was writing is ended and written again by the next command.
    """

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()
