"""Choices by name: the file of an option under `conf/`, and the object that it describes."""

import importlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from normbench.contracts import GROUP_CONTRACTS, is_transformer
from normbench.datasets.values import (
    UserError,
    check_list,
    format_value,
    spell_setting,
)
from normbench.synonyms import remedy

if TYPE_CHECKING:
    from normbench.datasets.sampling import Sampling
    from normbench.optimizers import Optimizer

CONF = Path(str(files("normbench.conf")))
OF_STATISTICS = ("statistics", "window")  # settings of the engine, not arguments of a scheme
COLUMN_TRANSFORMER = "sklearn.compose.ColumnTransformer"
ENTRY = re.compile(r"^(\w+):", re.MULTILINE)  # the key of an entry in the file of an option
TARGET_LINE = re.compile(r"^_target_: *(\S+)", re.MULTILINE)
TARGET_COMMENT = re.compile(r"^_target_: *\S+ +# *(.+)", re.MULTILINE)


_allowed_packages: ContextVar[tuple[str, ...]] = ContextVar("packages", default=())


def names(group: str) -> list[str]:
    """Return the names of the options of a group: the files under `conf/<group>`."""
    folder = CONF / group
    option_files = folder.rglob("*.yaml")
    return sorted(file.relative_to(folder).with_suffix("").as_posix() for file in option_files)


def describe_options(group: str) -> str:
    """Return a line for each option of a group: its name, and the comment of its `_target_`."""
    lines = []
    for name in names(group):
        comment = TARGET_COMMENT.search((CONF / group / f"{name}.yaml").read_text())
        lines.append(f"  {name:16}{comment[1] if comment else ''}".rstrip() + "\n")
    return "".join(lines)


def unknown_option_message(
    group: str, name: str, group_options: Sequence[str], typed_in: str = ""
) -> str:
    """Return the message that a group has no such option, with the remedy.

    Args:
        group: The group.
        name: The name that was typed.
        group_options: The names of the options of the group.
        typed_in: The setting that names the option, such as `normalizer.schemes`; empty where the
            group itself names it.
    """
    setting = spell_setting(typed_in or group, name)
    synonym_remedy = remedy(group, name, group_options, typed_in)
    if synonym_remedy:
        return f"{setting}: {synonym_remedy}"
    by_stem = {option.rpartition("/")[2]: option for option in group_options}
    closest = get_close_matches(name.rpartition("/")[2], by_stem, 1)
    choose = f"did you mean {by_stem[closest[0]]}, or" if closest else "choose"
    return f"{setting}: no such option; {choose} one of {', '.join(group_options)}"


def options(group: str, name: str, typed_in: str = "") -> dict[str, Any]:
    """Return the entries of `conf/<group>/<name>.yaml`: the option's `_target_` and settings.

    Args:
        group: The group.
        name: The name of the option.
        typed_in: The setting that names the option, for messages; empty where the group itself
            names it.

    Returns:
        The entries; references such as `${seed}` are not resolved. The caller may change them.

    Raises:
        UserError: There is no such option; the message lists the choices.
    """
    if name not in names(group):
        raise UserError(unknown_option_message(group, name, names(group), typed_in))
    return deepcopy(_parse((CONF / group / f"{name}.yaml").read_text()))


@cache
def _parse(text: str) -> dict[str, Any]:
    """Return the entries of the text of an option's file.

    Parsing YAML takes 4 ms, so the result is cached by text: a caller must not change it.
    """
    from omegaconf import OmegaConf

    content = OmegaConf.to_container(OmegaConf.create(text), resolve=False)
    assert isinstance(content, dict)
    return {str(key): value for key, value in content.items()}


def entries(group: str, name: str) -> list[str]:
    """Return the keys of an option of a group, without parsing its YAML, which takes 4 ms."""
    return ENTRY.findall((CONF / group / f"{name}.yaml").read_text())


@contextmanager
def allow_packages(packages: Any) -> Iterator[None]:
    """Allow a `_target_` in further packages within a context.

    Args:
        packages: The value of the setting `packages`: a list of names of top-level packages or
            modules.

    Raises:
        UserError: The value is no such list, or a package does not exist.
    """
    rule = "a list of packages' names, such as packages=[mypackage]"
    package_names = check_list("packages", packages, rule)
    if not all(isinstance(name, str) and name.isidentifier() for name in package_names):
        raise UserError(f"packages={packages}: must be {rule}")
    for name in package_names:
        # `find_spec` raises for some loaded modules, such as `__main__`.
        if name not in sys.modules and find_spec(name) is None:
            raise UserError(
                f"packages=[{name}]: there is no package or module {name} in the working folder "
                f"({Path.cwd()}) or in this environment; work in the folder that holds it, or "
                "install it"
            )
    token = _allowed_packages.set(tuple(package_names))
    try:
        yield
    finally:
        _allowed_packages.reset(token)


def import_target(group: str, target: Any, setting: str = "") -> Any:
    """Return the object of a dotted path such as `normbench.costs.softmax`, without calling it.

    A path may name the `_target_` of an option of this project, a public transformer of
    scikit-learn, or an object of a package that the user has allowed, see `allow_packages`.

    Args:
        group: The group whose contract the object must meet.
        target: The dotted path; a false value is refused as missing.
        setting: The setting that holds the path, for messages; empty for the `_target_` of the
            group.

    Returns:
        The function or class.

    Raises:
        UserError: The path is not allowed, cannot be imported, or breaks the contract of the group.
    """
    # For the remedy "write <typed> one of <names>", such as "write cost= and one of softmax, ...".
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
    # Of scikit-learn only its own estimator classes are accepted, no function, and no class that
    # one of its modules has imported from elsewhere.
    if not GROUP_CONTRACTS[group].accepts_target(target_object) or (
        package == "sklearn" and not _is_scheme_class(target_object)
    ):
        raise UserError(f"{setting}={target}: is no {GROUP_CONTRACTS[group].rule}")
    return target_object


@cache
def _declared(group: str) -> frozenset[str]:
    """Return the `_target_` of each option of a group; files are read once a process."""
    texts = (file.read_text() for file in (CONF / group).glob("*.yaml"))
    return frozenset(target for text in texts for target in TARGET_LINE.findall(text))


def _refuse_private(group: str, target: str, setting: str) -> None:
    """Raise `UserError` unless a target is a scheme `sklearn.MODULE.NAME` of a public module.

    Args:
        group: The group that the target is for; only `normalizer` accepts scikit-learn.
        target: The dotted path, which begins with `sklearn.`.
        setting: The setting that holds the path, for messages.
    """
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
        choice: The `_target_`, and the arguments of its call. For a normalizer it may also hold
            settings that the scheme itself does not take: `columns`, `statistics`, `window`.
        link: For messages, where the object is a part of another: the setting that names it, such
            as `normalizer.schemes`, and its name there, such as `pca`. None where the group itself
            names the object.

    Returns:
        The object; a scheme with `columns` is restricted to them by `on_columns`.

    Raises:
        UserError: The function refuses an argument, or returns an object of another kind.
    """
    # within: what stands before the name of an argument in a message.
    setting, within = (link[0], ".".join(link)) if link else ("", group)
    arguments = {key: value for key, value in choice.items() if key != "_target_"}
    if group == "normalizer":
        arguments = {key: _range(value) for key, value in arguments.items()}
    # No argument of the scheme: the built scheme is restricted to these columns at the end.
    columns = arguments.pop("columns", None) if group == "normalizer" else None
    if group == "normalizer":  # the engine reads these settings, the scheme does not take them
        arguments = {key: value for key, value in arguments.items() if key not in OF_STATISTICS}
    target = choice.get("_target_")
    factory = import_target(group, target, setting)
    if target == COLUMN_TRANSFORMER:  # its arguments are names of schemes, built here
        arguments |= _build_transformers(arguments, f"{within}.transformers")
    if str(target).startswith("sklearn.") and arguments.get("memory") is not None:
        raise UserError(
            f"{within}.memory={arguments['memory']}: keeps pickles in a folder and loads them, "
            "which can run code; leave it out"
        )
    try:
        built = factory(**arguments)
    except UserError:  # a ValueError whose message is complete
        raise
    except (TypeError, ValueError) as error:
        assignments = ", ".join(f"{within}.{key}={value}" for key, value in arguments.items())
        raise UserError(f"{assignments or within}: {' '.join(str(error).split())}") from error
    if not GROUP_CONTRACTS[group].accepts_result(built):
        raise UserError(
            f"{setting or f'{group}._target_'}={target}: gives {type(built).__name__}; "
            f"it must be a {GROUP_CONTRACTS[group].rule}"
        )
    return built if columns is None else on_columns(built, columns)


def on_columns(scheme: Any, columns: Any) -> Any:
    """Return a scheme on some columns of a data set; the others pass through.

    Args:
        scheme: A transformer.
        columns: `numeric`, or a column or a list of columns, by name or position.

    Returns:
        The scheme; its columns are looked up once a job gives it a data set.
    """
    from normbench.normalizers import FeatureSelection, OnColumns  # late: they load scikit-learn

    return OnColumns(scheme, FeatureSelection(columns))


def _build_transformers(arguments: Mapping[str, Any], setting: str) -> dict[str, Any]:
    """Build the schemes that the arguments of a `ColumnTransformer` name.

    Args:
        arguments: The arguments as typed: `transformers`, and maybe `remainder`.
        setting: The full name of the setting `transformers`, for messages.

    Returns:
        The arguments `transformers` and `remainder`, with schemes in place of their names.
    """
    transformers = arguments.get("transformers")
    rule = "a list of [name,scheme,columns], such as [[scaled,standard,[0,1]]]"
    triples = check_list(setting, transformers, rule)
    if not all(isinstance(triple, Sequence) and len(triple) == 3 for triple in triples):
        raise UserError(f"{setting}={format_value(transformers)}: must be {rule}")
    remainder = arguments.get("remainder", "drop")  # scikit-learn's default
    return {
        "transformers": [
            (name, _build_scheme_or_keep(scheme, setting), columns)
            for name, scheme, columns in triples
        ],
        "remainder": _build_scheme_or_keep(remainder, setting.replace("transformers", "remainder")),
    }


def _build_scheme_or_keep(entry: Any, setting: str) -> Any:
    """Return the scheme that an entry names; scikit-learn's `drop` and `passthrough` unchanged."""
    return entry if entry in ("drop", "passthrough") else _build_scheme(entry, setting)


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
    return make_pipeline(*(_build_scheme(entry) for entry in schemes))


def preconditioned(scheme: Any = "pca_sphere") -> "Optimizer":
    """Return gradient descent preconditioned by a named scheme, see `optimizers.preconditioned`.

    Args:
        scheme: The name of a scheme, or a mapping of its name to its settings, as in `chain`.

    Raises:
        UserError: A name or a setting does not exist.
    """
    from normbench import optimizers

    return optimizers.preconditioned(_build_scheme(scheme, "optimizer.scheme"))


def sampling(values: Mapping[str, Any]) -> "Sampling":
    """Return the settings that every data set has, with the scheme of the targets built.

    Args:
        values: The values of those settings, and maybe others, by name without the group.
            `target_scheme` is a transformer, or the name of a scheme as in `chain`.

    Returns:
        The settings of `Sampling`, whose `target_scheme` is a transformer or None.

    Raises:
        UserError: A name or a setting does not exist.
    """
    from normbench.datasets.sampling import Sampling

    chosen = {field.name: values[field.name] for field in fields(Sampling)}
    scheme = chosen["target_scheme"]
    if scheme is not None and not is_transformer(scheme):
        chosen["target_scheme"] = _build_scheme(scheme, "dataset.target_scheme")
    return Sampling(**chosen)


def _build_scheme(entry: Any, setting: str = "normalizer.schemes") -> Any:
    """Build the scheme that an entry names.

    Args:
        entry: A name under `conf/normalizer` or a dotted path, or a mapping of one such name to the
            settings of the scheme.
        setting: The setting that the entry stands in, for messages.

    Returns:
        The scheme, not fitted.
    """
    # A mapping with one entry, such as {"pca": {"components": 2}}.
    settings_by_name = {entry: {}} if isinstance(entry, str) else entry
    is_single = isinstance(settings_by_name, Mapping) and len(settings_by_name) == 1
    if not is_single or not isinstance(next(iter(settings_by_name.values())), Mapping):
        raise UserError(
            f"{setting}: {entry} is not a scheme; give a name, or a name with its "
            "settings, such as {pca:{components:2}}"
        )
    ((name, settings),) = settings_by_name.items()
    is_path = "." in str(name)  # such as sklearn.preprocessing.StandardScaler
    option = {"_target_": name} if is_path else options("normalizer", name, setting)
    return build("normalizer", option | dict(settings), (setting, str(name)))


def _range(value: Any) -> Any:
    """Return a list of numbers as a tuple, any other value unchanged.

    scikit-learn requires a tuple for a range, such as `feature_range`; YAML has only lists.
    """
    has_only_numbers = isinstance(value, list) and all(
        isinstance(entry, (int, float)) for entry in value
    )
    return tuple(value) if has_only_numbers and value else value
