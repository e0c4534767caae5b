"""Choices by name: the file of an option under `conf/`, and the object that it describes."""

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import cache, partial
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from normbench.datasets.dataset import Dataset
from normbench.datasets.sampling import Sampling
from normbench.datasets.values import UserError, check_list, did_you_mean, spell_setting
from normbench.optimizers import Optimizer
from normbench.optimizers import preconditioned as _preconditioned
from normbench.synonyms import remedy

CONF = Path(str(files("normbench.conf")))
ENTRY = re.compile(r"^(\w+):", re.MULTILINE)  # the key of an entry in the file of an option
TARGET = re.compile(r"^_target_: *(\S+)", re.MULTILINE)
MODEL_METHODS = ("layout", "start", "scores", "needs_all_points")
TARGET_COMMENT = re.compile(r"^_target_: *\S+ +# *(.+)", re.MULTILINE)


@dataclass(frozen=True)
class GroupContract:
    """The contract of a group: what its `_target_` may be, and what calling it must return.

    A cost is not called: it is the function itself.

    Attributes:
        rule: The rule in words.
        example: A valid `_target_`.
        accepts_target: Whether an object may be a `_target_`.
        accepts_result: Whether an object may be the result of calling it.
    """

    rule: str
    example: str
    accepts_target: Callable[[Any], bool]
    accepts_result: Callable[[Any], bool]


def _is_cost(candidate: Any) -> bool:
    """Return whether an object is a function that can be called with scores and targets."""
    if isinstance(candidate, type) or not callable(candidate):
        return False
    try:
        inspect.signature(candidate).bind("scores", "targets")
    except TypeError:
        return False
    except ValueError:  # a function in C has no signature
        return True
    return True


def _transforms(candidate: Any) -> bool:
    """Return whether an object has the methods of a scheme."""
    return callable(getattr(candidate, "fit", None)) and callable(
        getattr(candidate, "transform", None)
    )


def _makes_a_scheme(candidate: Any) -> bool:
    """Return whether calling an object may return a scheme."""
    return _transforms(candidate) if isinstance(candidate, type) else callable(candidate)


GROUP_CONTRACTS = {
    "cost": GroupContract(
        "cost: a function of scores and targets", "normbench.costs.softmax", _is_cost, _is_cost
    ),
    "dataset": GroupContract(
        "loader: a function that gives a data set, as normbench.datasets.make_dataset makes it",
        "normbench.datasets.files.csv",
        callable,
        lambda result: isinstance(result, Dataset),
    ),
    "normalizer": GroupContract(
        "scheme: a class with fit and transform, or a function that gives one, "
        "such as sklearn.preprocessing.StandardScaler",
        "sklearn.preprocessing.StandardScaler",
        _makes_a_scheme,
        lambda result: _transforms(result) and not isinstance(result, type),
    ),
    "model": GroupContract(
        "model: a class or a function that gives one, as normbench.models.Mlp does",
        "normbench.models.Mlp",
        callable,
        lambda result: result is None or all(map(partial(hasattr, result), MODEL_METHODS)),
    ),
    "optimizer": GroupContract(
        "function that gives a normbench.optimizers.Optimizer",
        "normbench.optimizers.momentum",
        callable,
        lambda result: isinstance(result, Optimizer),
    ),
}
_allowed_packages: ContextVar[tuple[str, ...]] = ContextVar("packages", default=())


def names(group: str) -> list[str]:
    """Return the names of the options of a group: the files under `conf/<group>`."""
    folder = CONF / group
    files = folder.rglob("*.yaml")
    return sorted(file.relative_to(folder).with_suffix("").as_posix() for file in files)


def describe_options(group: str) -> str:
    """Return a line for each option of a group: its name, and the comment of its `_target_`."""
    lines = []
    for name in names(group):
        comment = TARGET_COMMENT.search((CONF / group / f"{name}.yaml").read_text())
        lines.append(f"  {name:16}{comment[1] if comment else ''}".rstrip() + "\n")
    return "".join(lines)


def no_option(group: str, name: str, group_options: Sequence[str], typed_in: str = "") -> str:
    """Return the message that a group has no such option, with the remedy.

    Args:
        group: The group.
        name: The name that was typed.
        group_options: The options of the group.
        typed_in: The setting that names the option, if it is not the group itself.
    """
    setting = spell_setting(typed_in or group, name)
    near_option = remedy(group, name, group_options)
    if near_option:
        return f"{setting}: {near_option}"
    choices = ", ".join(group_options)
    return f"{setting}: no such option; choose one of {choices}{did_you_mean(name, group_options)}"


def options(group: str, name: str, typed_in: str = "") -> dict[str, Any]:
    """Return the entries of `conf/<group>/<name>.yaml`.

    Args:
        group: The group.
        name: The name of the option.
        typed_in: The setting that names the option, if it is not the group itself.

    Raises:
        UserError: There is no such option; the message lists the choices.
    """
    from omegaconf import OmegaConf

    if name not in names(group):
        raise UserError(no_option(group, name, names(group), typed_in))
    path = CONF / group / f"{name}.yaml"
    content = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    assert isinstance(content, dict)
    return {str(key): value for key, value in content.items()}


def entries(group: str, name: str) -> list[str]:
    """Return the keys of an option of a group, without parsing its YAML, which takes 4 ms."""
    return ENTRY.findall((CONF / group / f"{name}.yaml").read_text())


@contextmanager
def allowing(packages: Any) -> Iterator[None]:
    """Allow a `_target_` in further packages within a context.

    Args:
        packages: A list of top-level names.

    Raises:
        UserError: It is no such list, or a package does not exist.
    """
    rule = "a list of packages' names, such as packages=[mypackage]"
    names = check_list("packages", packages, rule)
    if not all(isinstance(name, str) and name.isidentifier() for name in names):
        raise UserError(f"packages={packages}: must be {rule}")
    for name in names:
        if name not in sys.modules and find_spec(name) is None:
            raise UserError(
                f"packages=[{name}]: there is no package or module {name} in the working folder "
                f"({Path.cwd()}) or in this environment; work in the folder that holds it, or "
                "install it"
            )
    token = _allowed_packages.set(tuple(names))
    try:
        yield
    finally:
        _allowed_packages.reset(token)


def locate(group: str, target: Any, setting: str = "") -> Any:
    """Return the object of a dotted path such as `normbench.costs.softmax`, without calling it.

    A path may name a target of an option of this project, a public transformer of scikit-learn, or
    an object of a package that the user has allowed.

    Args:
        group: The group.
        target: The dotted path.
        setting: The setting that names it, if it is not the `_target_` of the group.

    Raises:
        UserError: The path is not allowed, cannot be imported, or breaks the contract of the group.
    """
    typed = "the name of" if setting else f"{group}= and"
    setting = setting or f"{group}._target_"
    if not target:
        raise UserError(
            f"{setting}: is missing; the option's file says what it stands for in a line "
            f"such as _target_: {GROUP_CONTRACTS[group].example}"
        )
    target = str(target)
    module_name, _, attribute = target.rpartition(".")
    package = target.split(".")[0]
    if package == "normbench":  # the files under `conf` are the declaration
        if target not in _declared(group):
            raise UserError(
                f"{setting}={target}: is named by no option of this project; "
                f"write {typed} one of {', '.join(names(group))}"
            )
    elif package == "sklearn":
        _refuse_private(group, target, setting)
    elif package not in _allowed_packages.get():
        raise UserError(
            f"{setting}={target}: is of {package}; a _target_ is of this "
            "project, of scikit-learn or of a package that the setting packages names; where you "
            f"trust that code, add packages=[{package}]"
        )
    try:
        target_object = getattr(importlib.import_module(module_name), attribute)
    except (Exception, SystemExit) as error:  # the module of a user may raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(
            f"{setting}={target}: cannot be imported ({reason}); "
            f"give the dotted path of a function or class, such as {GROUP_CONTRACTS[group].example}"
        ) from error
    if not GROUP_CONTRACTS[group].accepts_target(target_object) or (
        package == "sklearn" and not _is_scheme_class(target_object)
    ):
        raise UserError(f"{setting}={target}: is no {GROUP_CONTRACTS[group].rule}")
    return target_object


@cache
def _declared(group: str) -> frozenset[str]:
    """Return the `_target_` of each option of a group; files are read once a process."""
    files = (file.read_text() for file in (CONF / group).glob("*.yaml"))
    return frozenset(name for text in files for name in TARGET.findall(text))


def _refuse_private(group: str, target: str, setting: str) -> None:
    """Raise `UserError` unless a target is a scheme `sklearn.MODULE.NAME` of a public module."""
    import sklearn

    segments = target.split(".")
    if group != "normalizer":
        raise UserError(
            f"{setting}={target}: scikit-learn gives schemes alone; here stands "
            f"a {GROUP_CONTRACTS[group].rule}"
        )
    if len(segments) != 3 or segments[1] not in sklearn.__all__:
        raise UserError(
            f"{setting}={target}: is in no public module of scikit-learn; "
            "write it as its documentation does, such as sklearn.preprocessing.StandardScaler"
        )


def _is_scheme_class(candidate: Any) -> bool:
    """Return whether an object is an estimator class of scikit-learn."""
    from sklearn.base import BaseEstimator

    return (
        isinstance(candidate, type)
        and issubclass(candidate, BaseEstimator)
        and candidate.__module__.startswith("sklearn.")
    )


def build(group: str, choice: Mapping[str, Any], link: tuple[str, str] | None = None) -> Any:
    """Return the object of a choice: its `_target_` called with its other entries.

    Args:
        group: The group.
        choice: The `_target_`, and the arguments of its call.
        link: The setting that names a scheme beside the group itself, and its name there.

    Raises:
        UserError: The function refuses an argument, or returns an object of another kind.
    """
    setting, within = (link[0], ".".join(link)) if link else ("", group)
    arguments = {key: value for key, value in choice.items() if key != "_target_"}
    if group == "normalizer":
        arguments = {key: _range(value) for key, value in arguments.items()}
    target = choice.get("_target_")
    factory = locate(group, target, setting)
    if str(target).startswith("sklearn.") and arguments.get("memory") is not None:
        raise UserError(
            f"{within}.memory={arguments['memory']}: keeps pickles in a folder and loads them, "
            "which can run code; leave it out"
        )
    try:
        built = factory(**arguments)
    except UserError:
        raise
    except (TypeError, ValueError) as error:
        assignments = ", ".join(f"{within}.{key}={value}" for key, value in arguments.items())
        raise UserError(f"{assignments or within}: {' '.join(str(error).split())}") from error
    if not GROUP_CONTRACTS[group].accepts_result(built):
        raise UserError(
            f"{setting or f'{group}._target_'}={target}: gives {type(built).__name__}; "
            f"it must be a {GROUP_CONTRACTS[group].rule}"
        )
    return built


def chain(schemes: Any) -> Any:
    """Return schemes one after another, as a scikit-learn pipeline.

    Args:
        schemes: A list of names under `conf/normalizer`, or of targets, each alone or with its
            settings, as in `["standard", {"pca": {"components": 2}}]`.

    Raises:
        UserError: The list is empty, or a name or a setting does not exist.
    """
    from sklearn.pipeline import make_pipeline

    if isinstance(schemes, str) or not isinstance(schemes, Sequence) or not schemes:
        raise UserError(
            f"normalizer.schemes={schemes}: must be a list of one scheme or more, "
            "such as [standard,pca]"
        )
    return make_pipeline(*(_link(entry) for entry in schemes))


def preconditioned(scheme: Any = "pca_sphere") -> Optimizer:
    """Return gradient descent preconditioned by a named scheme, see `optimizers.preconditioned`.

    Args:
        scheme: A scheme, as an entry of `chain`.

    Raises:
        UserError: A name or a setting does not exist.
    """
    return _preconditioned(_link(scheme, "optimizer.scheme"))


def sampling(values: Mapping[str, Any]) -> Sampling:
    """Return the settings that every data set has, with the scheme of the targets built.

    Args:
        values: The values of those settings, and maybe others, by name. `target_scheme` is an entry
            of `chain`, or a transformer.

    Raises:
        UserError: A name or a setting does not exist.
    """
    chosen = {field.name: values[field.name] for field in fields(Sampling)}
    scheme = chosen["target_scheme"]
    if scheme is not None and not _transforms(scheme):
        chosen["target_scheme"] = _link(scheme, "dataset.target_scheme")
    return Sampling(**chosen)


def _link(entry: Any, setting: str = "normalizer.schemes") -> Any:
    """Return the scheme of an entry of a setting: a name, or a name with settings."""
    settings_by_name = {entry: {}} if isinstance(entry, str) else entry
    is_single = isinstance(settings_by_name, Mapping) and len(settings_by_name) == 1
    if not is_single or not isinstance(next(iter(settings_by_name.values())), Mapping):
        raise UserError(
            f"{setting}: {entry} is not a scheme; give a name, or a name with its "
            "settings, such as {pca:{components:2}}"
        )
    ((name, settings),) = settings_by_name.items()
    is_path = "." in str(name)
    option = {"_target_": name} if is_path else options("normalizer", name, setting)
    return build("normalizer", option | dict(settings), (setting, str(name)))


def _range(value: Any) -> Any:
    """Return a list of numbers as a tuple, which scikit-learn requires for a range."""
    numbers = isinstance(value, list) and all(isinstance(entry, (int, float)) for entry in value)
    return tuple(value) if numbers and value else value
