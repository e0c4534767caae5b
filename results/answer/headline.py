"""The answer of a comparison in a sentence for a person: who is fastest, and by how much."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.answer import closing
from normbench.results.answer.race import Race, races
from normbench.results.answer.ranking import MOST, finite, labels_of, ranked
from normbench.results.compare.merging import merged
from normbench.results.compare.reached import excess_left, with_lowest_seen
from normbench.results.store.rows import shared_value
from normbench.results.store.runs import Sweep
from normbench.results.words.sentences import PARTS, Said, listed, paragraph, said

ZEROS = ("zeros", "None", "")  # how starts at zero weights are recorded


class Deed(NamedTuple):
    """What a scheme does that meets a target: the verb, its plural, and the rest."""

    does: str
    do: str
    what: str


def headline(sweep: Sweep, experiment: str | None = None) -> str:
    """Return who is fastest, in a sentence or two; over several problems, on how many.

    experiment: which one it is about, where there are several. Where no race was run, such as of
    jobs without a descent, the ranking or the reason.
    """
    every = [experiment] if experiment else sweep.experiments
    by_experiment = {name: races(sweep, name) for name in every}
    count = sum(map(len, by_experiment.values()))
    if count > 1 and any(
        len(race.iterations) > 1 for own in by_experiment.values() for race in own
    ):
        return over_problems(sweep, by_experiment).text
    for name, own in by_experiment.items():
        if own and count == 1:
            return paragraph(of_race(sweep, name, own[0]))
    return closing.sentence(sweep, every[0]) if len(every) == 1 else closing.overall(sweep)


def of_race(sweep: Sweep, experiment: str, race: Race) -> list[Said]:
    """Return the answer of the only problem of an experiment: who is fastest, what each takes."""
    schemes = merged(sweep).of_role(names.SCHEME, experiment)
    deed, alone = _deed(race, schemes), len(race.iterations) == 1
    if not race.fastest:
        return [_nobody(race, deed, finite(schemes), alone)]
    fast, one = listed(race.fastest), len(race.fastest) == 1
    if race.least == 0:  # its own start is so low: this is not descent
        starts = "starts" if one else "start"
        share = f"{100 * float(race.target):g} %"
        return [said("starts_there", schemes=fast, starts=starts, share=share, what=_whole(race))]
    others = "".join(f"; {words}" for words in _others(race))
    about = {"does": deed.does if one else deed.do, "what": deed.what, "others": others}
    about |= {"count": _count(race, race.fastest), "over": _over(race)}
    if alone:
        return [said("takes", who=fast, **about)]
    if not race.open:
        first = said("fastest", grid=_grid(race), schemes=fast)
        return [first, said("takes", who="It" if one else "They", **about)]
    return [_open(race, fast), said("takes", who=fast, **about)]


def _open(race: Race, fast: str) -> Said:
    """Name those that the splits do not show to be behind the fastest."""
    every = [fast, *race.open]
    which = (
        " or ".join(every) if len(every) <= MOST else f"{fast} or one of {len(race.open)} others"
    )
    doubt = "show no difference" if race.enough else "are too few to show a difference"
    return said("fastest_open", schemes=which, splits=f"{race.splits} splits", doubt=doubt)


def leaders(known: pd.DataFrame, race: Race) -> list[str]:
    """Return the fastest schemes; where none meets the target, those that come closest.

    known: the schemes that have a final cost. Empty where one meets it at the start already, and
    where the splits do not show which is fastest.
    """
    if race.fastest:
        return race.fastest if race.least > 0 and not race.open else []
    return [] if known.empty else labels_of(_closest(known, race))


def _closest(known: pd.DataFrame, race: Race) -> list[Mapping[Any, Any]]:
    return ranked(with_lowest_seen(known), "count" if race.counted else "excess")[0]


def _deed(race: Race, schemes: pd.DataFrame) -> Deed:
    share = float(race.target)
    if race.counted:
        return Deed("brings", "bring", f"the misclassified points down to {100 * share:g} % of all")
    if shared_value(schemes, names.setting("start"), "zeros") not in ZEROS:
        rest = f"{100 * share:g} % of that of zero weights"
        return Deed("brings", "bring", f"the excess cost down to {rest}")
    guessed = (schemes.get(names.MINIMUM_REACHED.column, pd.Series()) == "false").any()
    over = "over the lowest cost seen" if guessed else "cost"
    return Deed("removes", "remove", f"{100 * (1 - share):g} % of the excess {over}")


def _whole(race: Race) -> str:
    return "the points misclassified" if race.counted else "the excess cost of zero weights"


def _nobody(race: Race, deed: Deed, known: pd.DataFrame, alone: bool) -> Said:
    """Say that no scheme meets the target, and which comes closest."""
    if known.empty:
        return said("no_cost")
    closest = _closest(known, race)
    labels, left = labels_of(closest), excess_left(closest[0], closest[0])
    about = {"what": deed.what, "within": _within(race), "grid": _grid(race), "end": ""}
    if np.isfinite(left):
        comes, leaves = ("comes", "leaves") if len(labels) == 1 else ("come", "leave")
        lead = f"it {leaves}" if alone else f"{listed(labels)} {comes} closest and {leaves}"
        rest = f"{closing.share(max(left, 0.0))} of {'the points' if race.counted else 'it'}"
        about["end"] = f": {lead} {rest}"
    if alone:
        return said("nobody_alone", scheme=labels[0], do=deed.do, **about)
    return said("nobody", does=deed.does, **about)


def _others(race: Race) -> Iterable[str]:
    """Return what each other scheme takes, or why it does not arrive; alike ones together."""
    together: dict[Any, list[str]] = {}
    for scheme, count in race.others.items():
        name = str(scheme)
        step = race.steps[name]
        reason = race.lost.get(name) or (name in race.uncertain and not np.isfinite(count))
        key = (count, reason, bool(race.refined[name]), None if np.isnan(step) else f"{step:.3g}")
        together.setdefault(key if np.isfinite(count) else key[:3], []).append(name)
    for (count, reason, *_), schemes in together.items():
        labels = listed(schemes)
        if np.isfinite(count):
            need = "needs" if len(schemes) == 1 else "need"
            yield PARTS["needs"].format(labels=labels, need=need, count=_count(race, schemes, ""))
        elif reason == names.FAILED:
            yield PARTS["job_failed"].format(labels=labels)
        elif reason == names.DIVERGED:
            yield PARTS["none_finite"].format(labels=labels)
        else:
            name = "perhaps_not" if reason else "not_there"
            grid = " on this grid" if _grid_alone(race, schemes) else ""
            yield PARTS[name].format(labels=labels, within=_within(race, ""), grid=grid)


def _count(race: Race, schemes: Sequence[str], unit: str = " iterations") -> str:
    """Return the iterations of equal schemes and their step sizes: 12 iterations (step size 10).

    Without finer step sizes than the grid's one between them might take fewer.
    """
    count = race.iterations[schemes[0]]
    unit = unit[:-1] if count == 1 else unit
    most = "at most " if _grid_alone(race, schemes) else ""
    steps = race.steps[list(schemes)]
    sizes = list(dict.fromkeys(f"{step:.3g}" for step in steps)) if steps.notna().all() else []
    at = f" (step size{'s' if len(sizes) > 1 else ''} {listed(sizes)})" if sizes else ""
    return f"{most}{count:.0f}{unit}{at}"


def _grid(race: Race) -> str:
    """Return a doubt: no step sizes were tried but those of the grid."""
    return "" if race.refined.any() else " on this grid"


def _grid_alone(race: Race, schemes: Sequence[str]) -> bool:
    """Return whether the grid alone was tried for one of some schemes, but not for every one."""
    return bool(race.refined.any() and not race.refined[list(schemes)].all())


def _within(race: Race, unit: str = " iterations") -> str:
    """Return the budget in words; empty where it differs between jobs."""
    if race.budget is None:
        return ""
    return f" in {race.budget}{unit[:-1] if race.budget == 1 else unit}"


def _over(race: Race) -> str:
    return f" (medians of {race.splits} splits)" if race.splits > 1 else ""


def over_problems(sweep: Sweep, by_experiment: Mapping[str, Sequence[Race]]) -> Said:
    """Return on how many problems each scheme is the fastest, and which show no difference."""
    places = _places(sweep, by_experiment)
    wins: dict[str, list[str]] = {}
    alike: list[str] = []
    lost: dict[str, list[str]] = {}
    for place, (experiment, race) in places.items():
        if not race.fastest:
            deed = _deed(race, merged(sweep).of_role(names.SCHEME, experiment))
            lost.setdefault(f"{deed.does} {deed.what}", []).append(place)
        elif race.open or race.least == 0 or len(race.fastest) == len(race.iterations):
            alike.append(place)
        else:
            wins.setdefault(listed(race.fastest), []).append(place)
    by_data = all(place == _data(sweep, name) for place, (name, _) in places.items())
    every = f"{len(places)} {'data sets' if by_data else 'problems'}"
    parts: list[str] = []
    for winners, own in sorted(wins.items(), key=lambda pair: -len(pair[1])):
        be = "are" if " and " in winners else "is"
        rest = f" {be} fastest on {len(own)} of {every}" if not parts else f" on {_few(own)}"
        parts.append(f"{winners}{rest}")
    if alike:
        parts.append(f"{_few(alike)} {'shows' if len(alike) == 1 else 'show'} no difference")
    parts += [f"on {_few(own)} no scheme {what}" for what, own in lost.items()]
    return said("over_problems", parts="; ".join(parts))


def _places(
    sweep: Sweep, by_experiment: Mapping[str, Sequence[Race]]
) -> dict[str, tuple[str, Race]]:
    """Return races by the name of their problem: the data set, where that tells them apart."""
    data = [_data(sweep, name) for name in by_experiment]
    one_each = all(data) and len(set(data)) == len(by_experiment)
    return {
        ", ".join(filter(None, [of_data if one_each else name, race.setting])): (name, race)
        for (name, own), of_data in zip(by_experiment.items(), data)
        for race in own
    }


def _data(sweep: Sweep, experiment: str) -> str:
    return shared_value(sweep.of_role(names.SCHEME, experiment), names.DATASET.column)


def _few(places: Sequence[str]) -> str:
    """Return the names of problems, or how many they are."""
    return listed(places) if len(places) <= MOST else f"{len(places)} of them"
