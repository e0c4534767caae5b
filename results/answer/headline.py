"""The headline of a comparison: a sentence on which scheme is fastest, and by how much."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from normbench import names
from normbench.results.answer import closing
from normbench.results.answer.race import Race, races
from normbench.results.answer.ranking import (
    MAX_LISTED_SCHEMES,
    labels_of,
    rank_rows,
    with_final_cost,
)
from normbench.results.compare.merging import merged
from normbench.results.compare.passes import count_text
from normbench.results.compare.reached import ZEROS, excess_left
from normbench.results.store.rows import shared_value
from normbench.results.store.runs import Sweep
from normbench.results.words.sentences import (
    CLAUSES,
    Sentence,
    agree,
    join_phrases,
    make_sentence,
    paragraph,
)


class Achievement(NamedTuple):
    """The predicate of a scheme that meets a target: its verb in singular and plural, and the rest.

    Example: `removes`, `remove`, `99 % of the excess cost`.
    """

    does: str
    do: str
    complement: str


def headline(sweep: Sweep, experiment: str | None = None) -> str:
    """Return in a sentence or two which scheme is fastest; of several problems, on how many.

    Args:
        sweep: The sweep.
        experiment: The name of the experiment; None for all of them.

    Returns:
        The headline. Where there is no race, as for jobs without a descent, it is the ranking by
        final cost or the reason why there is none; likewise for several races of one scheme each,
        which nobody wins.
    """
    experiments = [experiment] if experiment else sweep.experiments
    by_experiment = {name: races(sweep, name) for name in experiments}
    count = sum(map(len, by_experiment.values()))
    if count > 1 and any(
        len(race.iterations) > 1
        for experiment_races in by_experiment.values()
        for race in experiment_races
    ):
        return compare_problems(sweep, by_experiment).text
    for name, experiment_races in by_experiment.items():
        if experiment_races and count == 1:  # the only race
            return paragraph(describe_race(sweep, name, experiment_races[0]))
    return (
        closing.ranking_paragraph(sweep, experiments[0])
        if len(experiments) == 1
        else closing.overall_ranking(sweep)
    )


def describe_race(sweep: Sweep, experiment: str, race: Race) -> list[Sentence]:
    """Return the answer for an experiment of one problem: the fastest scheme, and all iterations.

    Where no scheme meets the target, the answer says which comes closest; where a scheme meets it
    at the start, that speed is not compared. Schemes whose iterations are not known are named.

    Args:
        sweep: The sweep.
        experiment: The name of the experiment.
        race: The race of its problem.

    Returns:
        One to three sentences.
    """
    schemes = merged(sweep).of_role(names.SCHEME, experiment)
    if race.ends is not None:
        return _describe_ends(race, race.ends)
    uncounted = race.uncounted_schemes
    sentences = _describe_outcome(race, schemes[~schemes["label"].isin(uncounted)])
    if uncounted:
        verb = agree(len(uncounted), "descend")
        sentences.append(make_sentence("uncounted", who=join_phrases(uncounted), **verb))
    return sentences


def _describe_outcome(race: Race, schemes: pd.DataFrame) -> list[Sentence]:
    """Return one or two sentences on the schemes whose iterations to the target are known.

    Args:
        race: The race.
        schemes: Their scheme runs.
    """
    achievement, is_alone = _achievement(race, schemes), len(race.iterations) == 1
    if not race.fastest_schemes:
        return [_unmet_target(race, achievement, with_final_cost(schemes), is_alone)]
    fastest_text, is_single = join_phrases(race.fastest_schemes), len(race.fastest_schemes) == 1
    if race.fewest_iterations == 0:  # a start that meets the target says nothing of the descent
        starts = "starts" if is_single else "start"
        share = f"{100 * float(race.target):g} %"
        return [
            make_sentence(
                "starts_there",
                schemes=fastest_text,
                starts=starts,
                share=share,
                what=_starting_quantity(race),
            )
        ]
    other_clauses = "".join(f"; {clause}" for clause in _other_schemes(race))
    fields = {
        "does": achievement.does if is_single else achievement.do,
        "what": achievement.complement,
        "others": other_clauses,
    }
    unit = race.unit.of(race.fewest_iterations)
    fields |= {
        "count": _iterations_text(race, race.fastest_schemes, f" {unit}"),
        "over": _medians_note(race),
    }
    if is_alone:
        return [make_sentence("takes", who=fastest_text, **fields)]
    if not race.undecided_schemes:
        first = make_sentence("fastest", grid=_grid_note(race), schemes=fastest_text)
        return [first, make_sentence("takes", who="It" if is_single else "They", **fields)]
    # "It" would be ambiguous after a sentence on several candidates.
    return [
        _undecided_sentence(race, fastest_text),
        make_sentence("takes", who=fastest_text, **fields),
    ]


def _describe_ends(race: Race, ends: pd.DataFrame) -> list[Sentence]:
    """Return who ended lowest and how far the cost fell, where the least cost is not known.

    The lowest cost seen is no least cost: who ended there has removed all of the excess over it, by
    definition. So no share is given.

    Args:
        race: The race.
        ends: Its `ends`.
    """
    if ends.empty:
        return [make_sentence("no_cost")]
    places = [rows for _, rows in ends.groupby("place", sort=False)]
    schemes = [*ends.index, *race.iterations.index, *race.uncounted_schemes]
    budget, medians = _budget_text(race), _medians_note(race)
    falls = {scheme: _fall(ends.loc[[scheme]]) for scheme in ends.index}
    if race.own_functions:
        text = "; ".join(
            "under {} {did} from {start} to {end}".format(scheme, **fall)
            for scheme, fall in falls.items()
        )
        own = make_sentence("own_ends", within=budget, falls=text, over=medians)
        return [own, make_sentence("unknown_least")]
    if len(set(schemes)) == 1:
        ((scheme, fall),) = falls.items()
        fields = {**fall, "did": f"under {scheme} {fall['did']}", "others": ""}
        alone = make_sentence("fell", who="The", within=budget, over=medians, **fields)
        return [alone, make_sentence("unknown_least")]
    clauses = [
        CLAUSES["ended"].format(
            labels=join_phrases(list(rows.index)),
            cost=f"{rows['cost'].iloc[0]:.6g}",
            step=_steps_text(rows["step"]),
        )
        for rows in places[1:]
    ]
    reasons: dict[str, list[str]] = {}
    for scheme in dict.fromkeys(schemes):
        if scheme not in ends.index:
            reasons.setdefault(race.lost_verdicts.get(scheme, ""), []).append(scheme)
    for verdict, labels in reasons.items():
        clause = {names.FAILED: "job_failed", names.DIVERGED: "none_finite"}.get(verdict, "unsure")
        clauses.append(CLAUSES[clause].format(labels=join_phrases(labels)))
    first = make_sentence("ended_lowest", schemes=join_phrases(race.lowest_schemes))
    fields = {
        "who": "Its" if len(places[0]) == 1 else "Their",
        **_fall(places[0]),
        "within": budget,
        "others": "".join(f"; {clause}" for clause in clauses),
        "over": medians,
    }
    return [first, make_sentence("fell", **fields), make_sentence("unknown_least")]


def _fall(ends: pd.DataFrame) -> dict[str, str]:
    """Return how far the cost fell under schemes that ended equally low, as fields of a sentence.

    Args:
        ends: Their rows of `Race.ends`.
    """
    starts = join_phrases(list(dict.fromkeys(f"{start:.6g}" for start in ends["start"])))
    end = f"{ends['cost'].iloc[0]:.6g}{_steps_text(ends['step'])}"
    has_risen = (ends["cost"] > ends["start"]).all()
    return {"did": "rose" if has_risen else "fell", "start": starts, "end": end}


def _steps_text(steps: "pd.Series[float]") -> str:
    """Return step sizes in parentheses after a blank; empty where one is not known."""
    # A step size is NaN where splits differ in it: then none is named.
    sizes = list(dict.fromkeys(f"{step:.3g}" for step in steps)) if steps.notna().all() else []
    return f" (step size{'s' if len(sizes) > 1 else ''} {join_phrases(sizes)})" if sizes else ""


def _undecided_sentence(race: Race, fastest_text: str) -> Sentence:
    """Return the sentence that the splits do not decide which scheme is fastest, and why.

    Args:
        race: A race with `undecided_schemes`.
        fastest_text: The labels of the fastest schemes, joined.
    """
    candidates = [fastest_text, *race.undecided_schemes]
    schemes_text = (
        " or ".join(candidates)
        if len(candidates) <= MAX_LISTED_SCHEMES
        else f"{fastest_text} or one of {len(race.undecided_schemes)} others"
    )
    # Only the end of their own grid keeps these schemes from being shown to be slower.
    boundary_schemes = [name for name in race.undecided_schemes if name in race.boundary_schemes]
    if not race.enough_splits:
        doubt = "are too few to show a difference"
    elif boundary_schemes:
        schemes = join_phrases(boundary_schemes)
        doubt = f"do not decide, because the best step size of {schemes} may lie beyond the grid"
    else:
        doubt = "show no difference"
    return make_sentence(
        "fastest_open", schemes=schemes_text, splits=f"{race.splits} {race.sample}", doubt=doubt
    )


def leaders(finite_schemes: pd.DataFrame, race: Race) -> list[str]:
    """Return the fastest schemes; where no scheme meets the target, those that come closest.

    Where the least cost is not known, they are those that ended lowest.

    Args:
        finite_schemes: The scheme runs that have a final cost.
        race: The race of the problem.

    Returns:
        The labels; none where a scheme meets the target at the start already, where the splits do
        not show which is fastest, and where the iterations of a scheme are not known.
    """
    if race.ends is not None:
        return race.lowest_schemes
    if race.uncounted_schemes:
        return []
    if race.fastest_schemes:
        is_decided = race.fewest_iterations > 0 and not race.undecided_schemes
        return race.fastest_schemes if is_decided else []
    return [] if finite_schemes.empty else labels_of(_closest_rows(finite_schemes, race))


def _closest_rows(finite_schemes: pd.DataFrame, race: Race) -> list[Mapping[Any, Any]]:
    """Return the scheme runs that come closest to the target of a race.

    Several are returned if they tie.

    Args:
        finite_schemes: The scheme runs that have a final cost; at least one.
        race: The race, whose target no scheme meets.
    """
    return rank_rows(finite_schemes, "count" if race.by_count else "excess")[0]


def _achievement(race: Race, schemes: pd.DataFrame) -> Achievement:
    """Return the predicate of a scheme that meets the target of a race.

    Args:
        race: The race.
        schemes: The scheme runs of its experiment, whose start decides how it is worded.
    """
    share = float(race.target)
    if race.by_count:
        return Achievement(
            "brings", "bring", f"the misclassified points down to {100 * share:g} % of all"
        )
    # Targets are shares of the excess of zero weights; runs from elsewhere do not remove that one.
    if shared_value(schemes, names.setting("start"), "zeros") not in ZEROS:
        remainder = f"{100 * share:g} % of that of zero weights"
        return Achievement("brings", "bring", f"the excess cost down to {remainder}")
    return Achievement("removes", "remove", f"{100 * (1 - share):g} % of the excess cost")


def _starting_quantity(race: Race) -> str:
    """Return the name of the quantity that the target is a share of."""
    return "the points misclassified" if race.by_count else "the excess cost of zero weights"


def _unmet_target(
    race: Race, achievement: Achievement, finite_schemes: pd.DataFrame, is_single: bool
) -> Sentence:
    """Return the sentence that no scheme meets the target, and which one comes closest.

    Args:
        race: The race.
        achievement: The predicate of a scheme that would meet the target.
        finite_schemes: The scheme runs that have a final cost.
        is_single: Whether only one scheme was run, which is then the subject of the sentence.
    """
    if finite_schemes.empty:
        return make_sentence("no_cost")
    closest = _closest_rows(finite_schemes, race)
    labels, remaining_excess = labels_of(closest), excess_left(closest[0], closest[0])
    fields = {
        "what": achievement.complement,
        "within": _budget_text(race),
        "grid": _grid_note(race),
        "end": "",
    }
    if np.isfinite(remaining_excess):  # else the sentence ends without the remaining share
        comes, leaves = ("comes", "leaves") if len(labels) == 1 else ("come", "leave")
        lead = (
            f"it {leaves}" if is_single else f"{join_phrases(labels)} {comes} closest and {leaves}"
        )
        quantity = "the points" if race.by_count else "it"
        share = closing.format_share(max(remaining_excess, 0.0))
        fields["end"] = f": {lead} {share} of {quantity}"
    if is_single:
        return make_sentence("nobody_alone", scheme=labels[0], do=achievement.do, **fields)
    return make_sentence("nobody", does=achievement.does, **fields)


def _other_schemes(race: Race) -> Iterable[str]:
    """Yield a clause on each other scheme: its iterations, or why it does not meet the target.

    Schemes with the same outcome share a clause: equal iterations or reason, step size, and whether
    step sizes between those of the grid were tried.
    """
    schemes_by_outcome: dict[Any, list[str]] = {}
    for scheme, count in race.other_iterations.items():
        name = str(scheme)
        step = race.step_sizes[name]
        # A verdict, or whether the scheme may miss the target by rounding alone.
        reason = race.lost_verdicts.get(name) or (
            name in race.uncertain_schemes and not np.isfinite(count)
        )
        outcome: tuple[Any, ...] = (count, reason, bool(race.is_refined[name]))
        # Schemes that do not meet the target share a clause whatever their step sizes.
        if np.isfinite(count):
            outcome += (None if np.isnan(step) else f"{step:.3g}",)
        schemes_by_outcome.setdefault(outcome, []).append(name)
    for (count, reason, *_), schemes in schemes_by_outcome.items():
        labels = join_phrases(schemes)
        if np.isfinite(count):
            need = "needs" if len(schemes) == 1 else "need"
            yield CLAUSES["needs"].format(
                labels=labels, need=need, count=_iterations_text(race, schemes)
            )
        elif reason == names.FAILED:
            yield CLAUSES["job_failed"].format(labels=labels)
        elif reason == names.DIVERGED:
            yield CLAUSES["none_finite"].format(labels=labels)
        else:
            clause = "perhaps_not" if reason else "not_there"
            grid = " on this grid" if _has_grid_only(race, schemes) else ""
            within = "" if race.budget is None else f" in {race.budget}"
            yield CLAUSES[clause].format(labels=labels, within=within, grid=grid)


def _iterations_text(race: Race, schemes: Sequence[str], unit: str = "") -> str:
    """Return the iterations of equal schemes with their step sizes: 12 iterations (step size 10).

    The number is an upper bound where only the step sizes of the grid were tried.

    Args:
        race: The race.
        schemes: The labels of schemes with the same number of iterations.
        unit: The word after the number, with a leading blank; empty for none.
    """
    count = race.iterations[schemes[0]]
    bound = "at most " if _has_grid_only(race, schemes) else ""
    return f"{bound}{count_text(count)}{unit}{_steps_text(race.step_sizes[list(schemes)])}"


def _grid_note(race: Race) -> str:
    """Return the reservation that every scheme was tried at the grid's step sizes only.

    It is empty where step sizes between those of the grid were tried for a scheme.
    """
    return "" if race.is_refined.any() else " on this grid"


def _has_grid_only(race: Race, schemes: Sequence[str]) -> bool:
    """Return whether one of `schemes` was tried at the grid's step sizes only, unlike others.

    The others are any schemes of the race. Where all were tried at the grid alone, `_grid_note`
    says so once for all.
    """
    return bool(race.is_refined.any() and not race.is_refined[list(schemes)].all())


def _budget_text(race: Race) -> str:
    """Return the budget of iterations in words; empty where it differs between jobs."""
    return "" if race.budget is None else f" in {race.budget} {race.unit.of(race.budget)}"


def _medians_note(race: Race) -> str:
    """Return the number of splits that a median is over, or nothing for one split."""
    return f" (medians of {race.splits} {race.sample})" if race.splits > 1 else ""


def compare_problems(sweep: Sweep, by_experiment: Mapping[str, Sequence[Race]]) -> Sentence:
    """Return on how many problems each scheme is the fastest, and which show no difference.

    Problems with too few splits, or orders of batches, to show a difference are listed separately,
    and so are problems on which no scheme meets the target. Problems of one scheme are left out.

    Args:
        sweep: The sweep.
        by_experiment: The races of each experiment, one for each of its problems.

    Returns:
        One sentence; the scheme with the most problems comes first.
    """
    races_by_problem = {
        problem_name: (experiment, race)
        for problem_name, (experiment, race) in _races_by_problem(sweep, by_experiment).items()
        if len(race.iterations) > 1
    }
    wins: dict[tuple[str, ...], list[str]] = {}
    undecided: list[str] = []
    too_few: dict[str, list[str]] = {}
    unmet_goals: dict[str, list[str]] = {}
    ended_lowest: dict[tuple[str, ...], list[str]] = {}
    for problem_name, (experiment, race) in races_by_problem.items():
        # No difference: a doubt, a start that meets the target already, or equal schemes.
        is_open = (
            race.undecided_schemes
            or race.fewest_iterations == 0
            or len(race.fastest_schemes) == len(race.iterations)
        )
        if race.lowest_schemes:  # the least cost is not known
            ended_lowest.setdefault(tuple(race.lowest_schemes), []).append(problem_name)
        elif race.ends is not None:
            unmet_goals.setdefault("can be compared with another", []).append(problem_name)
        elif not race.fastest_schemes:  # no scheme meets the target
            achievement = _achievement(race, merged(sweep).of_role(names.SCHEME, experiment))
            goal_text = f"{achievement.does} {achievement.complement}"
            unmet_goals.setdefault(goal_text, []).append(problem_name)
        elif not is_open:
            wins.setdefault(tuple(race.fastest_schemes), []).append(problem_name)
        elif race.splits > 1 and race.fewest_iterations > 0 and not race.enough_splits:
            too_few.setdefault(f"{race.splits} {race.sample}", []).append(problem_name)
        else:
            undecided.append(problem_name)
    # Problems whose names are data sets alone are called data sets.
    by_data = all(
        problem_name == _data_set(sweep, name)
        for problem_name, (name, _) in races_by_problem.items()
    )
    problem_count = f"{len(races_by_problem)} {'data sets' if by_data else 'problems'}"
    clauses: list[str] = []
    for winners, problem_names in sorted(wins.items(), key=lambda pair: -len(pair[1])):
        verb = "are" if len(winners) > 1 else "is"
        problems_text = _listed_problems(problem_names, problem_count)
        # The first clause has the verb and the number of problems, the others only their problems.
        if not clauses and len(races_by_problem) > 1:
            problems_text = f"{len(problem_names)} of {problem_count}"
        predicate = f"on {problems_text}" if clauses else f"{verb} fastest on {problems_text}"
        clauses.append(f"{join_phrases(winners)} {predicate}")
    clauses += [
        f"{join_phrases(schemes)} ended lowest on {_listed_problems(problem_names, problem_count)}"
        for schemes, problem_names in ended_lowest.items()
    ]
    if undecided:
        verb = "shows" if len(undecided) == 1 else "show"
        clauses.append(f"{_listed_problems(undecided, problem_count)} {verb} no difference")
    clauses += [
        f"{splits} are too few to show a difference on "
        f"{_listed_problems(problem_names, problem_count)}"
        for splits, problem_names in too_few.items()
    ]
    clauses += [
        f"on {_listed_problems(problem_names, problem_count)} no scheme {goal_text}"
        for goal_text, problem_names in unmet_goals.items()
    ]
    return make_sentence("over_problems", parts="; ".join(clauses))


def _races_by_problem(
    sweep: Sweep, by_experiment: Mapping[str, Sequence[Race]]
) -> dict[str, tuple[str, Race]]:
    """Return the experiment and the race of each problem, by the problem's name.

    The name is the data set and the setting; the experiment takes the place of the data set where
    data sets do not distinguish the experiments: where two share one, or one has several.
    """
    data_sets = [_data_set(sweep, name) for name in by_experiment]
    distinct_data = all(data_sets) and len(set(data_sets)) == len(by_experiment)
    return {
        ", ".join(filter(None, [data_set if distinct_data else name, race.setting])): (name, race)
        for (name, experiment_races), data_set in zip(by_experiment.items(), data_sets)
        for race in experiment_races
    }


def _data_set(sweep: Sweep, experiment: str) -> str:
    """Return the data set of an experiment; empty where its runs have several."""
    return shared_value(sweep.of_role(names.SCHEME, experiment), names.DATASET.column)


def _listed_problems(problem_names: Sequence[str], problem_count: str) -> str:
    """Return the names of problems as a list, or their number if they are many.

    Args:
        problem_names: The names.
        problem_count: The number of all problems with its noun, such as `8 data sets`.
    """
    return (
        join_phrases(problem_names)
        if len(problem_names) <= MAX_LISTED_SCHEMES
        else f"{len(problem_names)} of {problem_count}"
    )
