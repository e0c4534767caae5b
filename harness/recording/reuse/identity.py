"""The identity of a job: digests of what changes its descent, and of what else was requested.

`descent` is a digest of what changes the numbers of the descent: the content of the data, cost,
scheme, optimizer, start, step sizes, iterations, precision, `NUMBERS`, and the code of the cost,
scheme and optimizer, which may be code of the user with the modules of the user that it imports.
An installed package, of a component or imported by a module of the user, enters by its version and
files. Files that a component reads do not enter.
Jobs of equal `descent` have histories that are equal to rounding. The processor, the kernels and
the versions of numpy, scipy and autograd change no more than rounding, and are not part of it (tags
of the sweep record them). The version of scikit-learn is part of it where the scheme is from
scikit-learn. Checkpoints depend on more. `job` is a digest of `descent` and of the use of its
histories: record, theory, search, rules, shown step. A recorded job is reused if it is equal, or if
its descent is equal and more was requested of it. A recorded job that differs in its judging alone
is judged again. Any other job is descended.

No sentence, figure, rule or measure is part of `descent`: changing one leaves the histories valid.
"""

import ast
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from normbench.datasets import Dataset
from normbench.optimizers import Optimizer
from normbench.settings import DESCENT_PART, JUDGING_PART, REQUEST_PART, identity_params

# Raise it with any change that moves the numbers of a descent by more than rounding, in the engine
# or in code that a cost, scheme or optimizer calls, and with any other rule of the verdicts:
# recorded jobs are then descended again. A test with recorded numbers fails if it was forgotten.
NUMBERS = 10
BESIDE_GRID = ("refine", "shadows")  # settings of descents beside the grid
# Installed packages whose versions change no more than rounding, or enter as scikit-learn's does.
LIBRARIES = ("numpy", "scipy", "autograd", "sklearn")
LIST_MARKS = str.maketrans("", "", "[]()' \"")  # removed from the text of a list


class Identity(NamedTuple):
    """The digests of a job, 64 hexadecimal digits each.

    Attributes:
        descent: The digest of the settings, data and code that change the descent.
        job: The digest of the descent, and of what was requested of it.
        grid: The digest of the descent without the settings of descents beside its grid.
    """

    descent: str
    job: str
    grid: str


def identity(params: Mapping[str, Any], dataset: Dataset, components: tuple[Any, ...]) -> Identity:
    """Return the identity of a job.

    Args:
        params: The choices and settings of the job, by names such as `normalizer.ridge`.
        dataset: The data set.
        components: The cost, normalizer, optimizer and, of a network, the model. Their code is part
            of the identity.

    Returns:
        The digests.
    """
    data = [dataset.fingerprint, dataset.task, dataset.classes]
    descent_settings = identity_params(DESCENT_PART, params)
    members = [member for component in components for member in _members(component)]
    definitions = [_definition_of(member) for member in members]
    modules = _with_imports({str(definition.__module__) for definition in definitions})
    code = {name: code_identity(name) for name in sorted(modules)}
    code |= {"definitions": ", ".join(definition.__qualname__ for definition in definitions)}
    # The settings of schemes inside other schemes are not, or only in part, among the parameters.
    # A component that holds no scheme is its own and only member.
    is_composed = [*map(id, members)] != [*map(id, components)]
    member_settings = [_describe_settings(member) for member in members] if is_composed else []
    descent = _digest(json.dumps([descent_settings, data, code, NUMBERS, member_settings]))
    grid_settings = {
        key: value for key, value in descent_settings.items() if key not in BESIDE_GRID
    }
    grid = _digest(json.dumps([grid_settings, data, code, NUMBERS, member_settings]))
    return Identity(descent, job_digest(descent, params), grid)


def job_digest(descent: str, params: Mapping[str, Any]) -> str:
    """Return the digest of all that a job's record depends on.

    Args:
        descent: The digest of its descent.
        params: Its parameters, texts or values. The requested arrays, the settings that request
            other measures, and the settings of judging are part of the digest.

    Returns:
        The digest, equal for jobs with equal records.
    """
    return _digest(
        json.dumps(
            [
                descent,
                sorted(requested_arrays(params)),
                _requested_settings(params),
                judging_settings(params),
            ]
        )
    )


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


@lru_cache
def code_identity(module: str) -> str:
    """Return a text that identifies the code of a module.

    Args:
        module: The full name of the module.

    Returns:
        The version of scikit-learn for its modules, a digest of the package for those of another
        installed package, the name of a built-in or compiled module, and a digest of the syntax
        tree of any other. Comments, docstrings, layout and the errors that are raised do not change
        the last one.
    """
    if module.startswith("sklearn."):
        return version("scikit-learn")
    if _is_installed(module):
        return _package_digest(module.partition(".")[0])
    file = _source_file(module)
    if not file:  # a built-in or compiled module
        return module
    tree = ast.parse(file.read_bytes())  # in the encoding that the module says
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]  # the docstring
        if isinstance(node, ast.Raise):
            node.exc = node.cause = None
    return _digest(ast.dump(tree))


@lru_cache
def _package_digest(package: str) -> str:
    """Return a digest of an installed package: its version, and its `.py` files."""
    digest = hashlib.sha256()
    with suppress(PackageNotFoundError):  # its distribution has another name, or it has none
        digest.update(version(package).encode())
    spec = _find_spec(package)
    assert spec is not None
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    files = [(folder, file) for folder in folders for file in sorted(folder.rglob("*.py"))]
    for folder, file in files:
        digest.update(f"\n{file.relative_to(folder)}\n".encode() + file.read_bytes())
    if not folders and spec.origin:  # a package of one file
        digest.update(Path(spec.origin).read_bytes())
    return digest.hexdigest()


def _with_imports(modules: set[str]) -> set[str]:
    """Return modules with what the user's modules among them import.

    That is the user's modules, and installed packages, without what these import in turn.
    """
    closure: set[str] = set()
    remaining = list(modules)
    while remaining:
        module = remaining.pop()
        if module not in closure:
            closure.add(module)
            remaining += _user_imports(module) if _is_user_code(module) else ()
    return closure


@lru_cache
def _user_imports(module: str) -> list[str]:
    """Return the user's modules and the installed packages that a module of the user's imports."""
    file = _source_file(module)
    assert file is not None
    # The package of a module is itself where its file is an `__init__.py`.
    package = module if file.stem == "__init__" else module.rpartition(".")[0]
    imported: dict[str, None] = {}  # the keys, in order and each once
    for node in ast.walk(ast.parse(file.read_bytes())):
        targets = []
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            source = resolve_name(source, package) if node.level else source
            # An imported name may be a module or an object of the source.
            targets = [f"{source}.{alias.name}" for alias in node.names]
        for target in targets:
            parts = target.split(".")
            imported.update(
                dict.fromkeys(".".join(parts[:end]) for end in range(1, len(parts) + 1))
            )
    packages = {name.partition(".")[0] for name in imported if _is_installed(name)}
    return [*filter(_is_user_code, imported), *sorted(packages)]


def _is_user_code(module: str) -> bool:
    """Return whether a module is a `.py` file outside normbench, Python and `site-packages`."""
    root = module.partition(".")[0]
    if root == "normbench" or root in sys.stdlib_module_names or _is_in_site_packages(root):
        return False
    return _source_file(module) is not None


def _is_installed(module: str) -> bool:
    """Return whether a module is of an installed package; not of normbench or `LIBRARIES`."""
    root = module.partition(".")[0]
    return root not in ("normbench", *LIBRARIES) and _is_in_site_packages(root)


def _is_in_site_packages(package: str) -> bool:
    """Return whether a package is in `site-packages`; it is found without being imported."""
    spec = _find_spec(package)
    places = [spec.origin or "", *(spec.submodule_search_locations or ())] if spec else []
    return any("site-packages" in Path(place).parts for place in places)


def _source_file(module: str) -> Path | None:
    """Return the `.py` file of a module, which need not be loaded; None without one."""
    spec = _find_spec(module)
    file = spec.origin if spec else getattr(sys.modules.get(module), "__file__", None)
    return Path(file) if file and file.endswith(".py") else None


def _find_spec(module: str) -> ModuleSpec | None:
    """Return the specification of a module; None where there is no such module."""
    try:
        return find_spec(module)
    except (Exception, SystemExit):  # a package of the user's may raise anything
        return None


def _members(component: Any) -> Iterator[Any]:
    """Yield a component and all schemes that it holds; a pipeline yields only its steps.

    A component holds schemes in its attribute `scheme` (an optimizer, or a scheme for some columns)
    or in its `transformers` (a `ColumnTransformer`) or `transformer_list` (a `FeatureUnion`). Their
    settings are not, or only in part, among the parameters of the job.
    """
    if steps := _entries(component, "steps"):
        for _, step in steps:
            yield from _members(step)
        return
    yield component
    held = [getattr(component, "scheme", None)]
    held += [scheme for _, scheme, _ in _entries(component, "transformers")]
    held += [scheme for _, scheme in _entries(component, "transformer_list")]
    for scheme in held:
        if hasattr(scheme, "fit"):  # not None, nor scikit-learn's "drop" and "passthrough"
            yield from _members(scheme)


def _entries(component: Any, attribute: str) -> list[Any]:
    """Return the named schemes that a composed scheme of scikit-learn holds.

    Args:
        component: A scheme, a cost or an optimizer.
        attribute: `steps` of a pipeline, `transformer_list` of a `FeatureUnion`, or `transformers`
            of a `ColumnTransformer`.

    Returns:
        Tuples `(name, scheme)`, of `transformers` `(name, scheme, columns)`; empty for a component
        without the attribute, or of another library.
    """
    is_composed = type(component).__module__.startswith("sklearn.")
    return list(getattr(component, attribute, None) or ()) if is_composed else []


def _describe_settings(component: Any) -> list[str]:
    """Return the class name of a component, its settings, and its selected columns, as texts.

    Settings without a text that identifies them, such as functions, are left out.

    Args:
        component: A cost, a scheme or an optimizer; also a scheme inside another component.
    """
    params = component.get_params() if hasattr(component, "get_params") else {}
    texts = {key: _describe_value(value) for key, value in params.items()}
    assignments = [f"{key}={text}" for key, text in texts.items() if text]
    selections = [getattr(component, "columns", None)]
    selections += [columns for _, _, columns in _entries(component, "transformers")]
    # The text of a `FeatureSelection`, which has positions, names the columns and the positions.
    selected = [
        str(columns) if hasattr(columns, "positions") else _describe_value(columns)
        for columns in selections
        if columns is not None
    ]
    return [type(component).__qualname__, *sorted(assignments), *filter(None, selected)]


def _describe_value(value: Any) -> str:
    """Return a text that identifies the value of a setting; empty where there is none.

    The text of an array is its digest. A function or another object has no text, nor has a list or
    dictionary that holds one.
    """
    if isinstance(value, (bool, int, float, str, tuple, type(None))):
        return repr(value)
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, dict):
        value = [part for pair in value.items() for part in pair]
    if isinstance(value, list):
        texts = [_describe_value(part) for part in value]
        return f"[{', '.join(texts)}]" if all(texts) else ""
    return ""


def _definition_of(component: Any) -> Any:
    """Return the function or the class that defines a component, in a module."""
    component = getattr(component, "formula", component)  # a cost that autograd has wrapped
    definition = component if hasattr(component, "__qualname__") else type(component)
    if isinstance(component, Optimizer):  # an instance of one class for all; its step defines it
        definition = component.step
    return definition


def _digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
