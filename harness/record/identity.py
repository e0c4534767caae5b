"""The keys of a job: digests of what changes its descent, and of what its record depends on.

They follow from its settings, before any data are loaded. `descent` is a digest of what changes the
numbers of the descent: the settings of the data, cost, scheme, model, optimizer, start, step sizes,
iterations and precision, the bytes of the data's files, `NUMBERS`, and the code of the components.
Code of the user enters by the bytes of the modules in its folder, a package by its version and the
bytes of its modules, scikit-learn by its version. Files that a component reads by itself do not
enter. Processor, kernels and the versions of numpy, scipy and autograd change no more
than rounding, and are not part of it. `job` is a digest of the descent and of the use of its
histories: record, theory, search, rules, shown step.

A recorded job is reused if it is equal, or if its descent is equal and more was requested of it;
one that differs in its judging alone is judged again. Any other job is descended.
"""

import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from normbench import choices
from normbench.record.provenance import PLACES
from normbench.settings import DESCENT_PART, JUDGING_PART, REQUEST_PART, identity_params

# Raise it with any change that moves the numbers of a descent by more than rounding, in the engine,
# in the data or in code that a component calls, and with any other rule of the verdicts: recorded
# jobs are then descended again. A test with recorded numbers fails if it was forgotten.
NUMBERS = 10
KEY_PART = 16  # hexadecimal digits of a key that tell the descent, and as many that tell the job
LIST_MARKS = str.maketrans("", "", "[]()' \"")  # removed from the text of a list
# Settings of the data that do not change the points: places, and parts held out in turn.
BESIDE_DATA = ("dataset", "dataset.data_dir", "dataset.folds", "dataset.repeats")
# Settings by which the seed of the split draws points; without them it draws none.
DRAWING_POINTS = ("test_fraction", "points", "augment", "outliers")
DOTTED_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")  # the dotted path of a component
COMPONENTS = ("dataset", "cost", "normalizer", "optimizer", "model")


class Keys(NamedTuple):
    """The digests of a job, 64 hexadecimal digits each.

    Attributes:
        descent: The digest of the settings, data and code that change the descent.
        job: The digest of the descent, and of what was requested of it.
    """

    descent: str
    job: str

    @property
    def key(self) -> str:
        """The name of the record of the job: it begins as those of all jobs of its descent."""
        return self.descent[:KEY_PART] + self.job[:KEY_PART]


def keys(experiment: str, params: Mapping[str, Any], plain: Mapping[str, Any]) -> Keys:
    """Return the keys of a job.

    Args:
        experiment: The name of its experiment, which its record has.
        params: The choices and settings of the job, by names such as `normalizer.ridge`.
        plain: The settings as nested plain values, with the `_target_` of each component.
    """
    components = _with_named_schemes({name: plain[name] for name in COMPONENTS})
    modules = {path.rpartition(".")[0] for path in _targets(components)}
    code = {name: _digest_of_code(name) for name in sorted(modules)}
    # The settings of schemes inside other schemes are not among the parameters.
    inner_schemes = [components[name] for name in ("normalizer", "optimizer")]
    descent_settings = identity_params(DESCENT_PART, params)
    parts = [experiment, descent_settings, _data(params), inner_schemes, code, NUMBERS]
    descent = _digest(json.dumps(parts, sort_keys=True, default=str))
    return Keys(descent, job_digest(descent, params))


def keys_of_text(text: str) -> Keys:
    """Return the keys of a job that cannot run, from all of its settings as text."""
    return Keys(_digest(text), _digest(f"{text} "))


def job_digest(descent: str, params: Mapping[str, Any]) -> str:
    """Return the digest of all that a job's record depends on.

    Args:
        descent: The digest of its descent.
        params: Its parameters, texts or values. The requested arrays, the settings that request
            other measures, and the settings of judging are part of the digest.

    Returns:
        The digest, equal for jobs with equal records.
    """
    requested = sorted(requested_arrays(params)), _requested_settings(params)
    return _digest(json.dumps([descent, *requested, judging_settings(params)]))


def covers(recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether a recorded job has all that another job requests, whatever rules judged it.

    Args:
        recorded: The parameters of the recorded job, texts or values.
        wanted: The parameters of the other job, which has the same descent.

    Returns:
        True where the recorded job has at least the requested arrays, and the same settings that
        request other measures.
    """
    has_arrays = requested_arrays(recorded) >= requested_arrays(wanted)
    return has_arrays and _requested_settings(recorded) == _requested_settings(wanted)


def judging_settings(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings by which the histories of a job are judged; none without a descent."""
    # A job that records arrays with `iterations=0` makes no descent; see `measures`.
    if requested_arrays(params) and str(params.get("iterations")) == "0":
        return {}
    return identity_params(JUDGING_PART, params)


def requested_arrays(params: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of arrays in the setting `record`, a sequence or its text `[a, b]`."""
    record = str(params.get("record", "[]"))
    return frozenset(name for name in record.translate(LIST_MARKS).split(",") if name)


def _requested_settings(params: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that request measures of a job, without `record`, as texts.

    `requested_arrays` returns the names in `record`, because their order and surplus ones do not
    matter.
    """
    settings = identity_params(REQUEST_PART, params)
    return {key: value for key, value in settings.items() if key != "record"}


def _data(params: Mapping[str, Any]) -> dict[str, str]:
    """Return what determines the points: the settings of the data, a file by its bytes."""
    settings = {
        key: _describe_file(value)
        for key, value in params.items()
        if key.startswith("dataset.") and key not in BESIDE_DATA
    }
    draws = (params.get(f"dataset.{name}") for name in DRAWING_POINTS)
    if not any(str(value) not in ("None", "0", "0.0") for value in draws):
        settings.pop("dataset.split_seed", None)
    return settings


def _describe_file(value: Any) -> str:
    """Return a value as text; one that is the path of a file as a digest of its bytes."""
    with suppress(OSError, ValueError, RuntimeError):  # no path at all
        file = Path(value).expanduser() if isinstance(value, str) else None
        if file and file.is_file():
            status = file.stat()
            return _digest_of_file(file.absolute(), status.st_mtime_ns, status.st_size)
    return str(value)


@cache
def _digest_of_file(file: Path, changed_at: int, size: int) -> str:
    """Return the digest of a file, which is read again where its time or size is another."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _with_named_schemes(value: Any) -> Any:
    """Return settings in which each name of a scheme stands with the settings of its option."""
    if isinstance(value, Mapping):
        return {str(key): _with_named_schemes([key, entry]) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_named_schemes(entry) for entry in value]
    return [value, choices.options("normalizer", value)] if value in _scheme_names() else value


@cache
def _scheme_names() -> frozenset[Any]:
    """Return the names of the schemes of this project."""
    return frozenset(choices.names("normalizer"))


def _targets(value: Any) -> Iterator[str]:
    """Yield the dotted paths among settings. Other texts of that form, `a.csv`, do no harm."""
    if isinstance(value, Mapping):
        yield from _targets([*value.values()])
    elif isinstance(value, (list, tuple)):
        for entry in value:
            yield from _targets(entry)
    elif isinstance(value, str) and DOTTED_PATH.fullmatch(value):
        yield value


@cache
def _digest_of_code(module: str) -> str:
    """Return a text that identifies the code of a module; the name of one that is not found.

    It is the version of scikit-learn for its modules, a digest of the module for those of this
    project, and a digest of the package for any other: its version, and its modules. Of a module
    without a package the other modules and packages in its folder count, which it may import.
    """
    root, *path = module.split(".")
    if root == "sklearn":
        return version("scikit-learn")
    digest = hashlib.sha256()
    if root == "normbench":  # found without an import, which would load scikit-learn
        places = [folder.joinpath(*path) for folder in PLACES]
        files = [
            file for place in places for file in [*place.glob("*.py"), place.with_suffix(".py")]
        ]
    else:
        files = _package_files(root)
        with suppress(PackageNotFoundError):  # its distribution has another name, or it has none
            digest.update(version(root).encode())
    codes = [file.read_bytes() for file in sorted(files) if file.is_file()]
    digest.update(b"".join(codes))
    return digest.hexdigest() if codes else module


def _package_files(package: str) -> list[Path]:
    """Return the `.py` files of a package, which need not be loaded; see `_digest_of_code`."""
    try:
        spec = None if package in sys.stdlib_module_names else find_spec(package)
    except (Exception, SystemExit):  # a package of the user's may raise anything
        spec = None
    if spec is None:
        return []
    folders = [Path(place) for place in spec.submodule_search_locations or ()]
    if folders and spec.origin:
        return [file for folder in folders for file in folder.rglob("*.py")]
    file = Path(spec.origin or "")
    if "site-packages" in file.parts:  # beside all others that are installed
        return [file]
    # Some folder may have the name of a file of data: not all of it is looked through.
    patterns = "*.py", "*/*.py"
    places = folders or [file.parent]
    return [file for place in places for pattern in patterns for file in place.glob(pattern)]


def _digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
