"""What the sentences on a whole comparison claim, checked against the histories of its jobs.

Independent of the code that says them, as `tests.claims.claims` is for those on one scheme.
"""

import re
from dataclasses import replace

import numpy as np

from tests import door
from tests.claims.answers import CHECKS as OF_THE_ANSWER
from tests.claims.answers import target_reached
from tests.claims.claims import CHECKS as OF_A_SCHEME
from tests.claims.claims import UNRANKED, lost_directions, near, sentences
from tests.claims.jury import NUMBER, Jury

PLACE = re.compile(
    rf"(?P<labels>[\w =]+), (?P<under>under )?(?P<value>{NUMBER})(?P<count> misclassified)?"
    r"(?: at step sizes? (?P<sizes>[^(]+))? \((?P<told>[^)]*)\)"
)
FAILED = ("cycling", *UNRANKED)
CAPTIONS = ("step_sizes", "phase_diagram", "contours", "data", "sharpness", "projection")
CAPTIONS += ("melt",)
VERDICT = re.compile("not converged|converged|cycling")
FEW_WEIGHTS = 100  # their second derivatives take little time
SHARE = 1e-10  # by which points are moved to see where runs end then
TIED = 1e-6  # of the start's excess


def _from(said, name):
    """Return what stands from a field on: no pattern tells where one of several at a time ends."""
    fields = list(said)
    return "".join(said[field] for field in fields[fields.index(name) :])


def _split(labels):
    return labels.split(" = ")


def _ranking(jury, said):
    places = [PLACE.fullmatch(one) for one in _from(said, "places").split("; ")]
    assert all(places), said
    checks, before = [], -np.inf
    seen = [label for one in places for label in _split(one["labels"])]
    checks.append(sorted(seen) == sorted(jury.best))
    for one in places:
        labels = _split(one["labels"])
        ends = [jury.end(label) for label in labels]
        apart = 0.0 if jury.counted else 1.01 * TIED * (jury.start(labels[0]))
        value = float(one["value"])
        checks.append(bool(one["count"]) == jury.counted)
        if one["under"]:
            checks.append(max(map(abs, ends)) <= value * 1.1 + apart)
        else:
            checks += [abs(end - value) <= 6e-4 * abs(end) + apart for end in ends[:1]]
            checks.append(max(ends) - min(ends) <= len(ends) * apart)
        checks.append(min(ends) > before - apart / 100)
        before = max(ends)
        sizes = {f"{jury.best[label].step_size:g}" for label in labels}
        checks.append(set(re.split(r", | and ", one["sizes"])) == sizes)
        words = {jury.best[label].verdict for label in labels}
        checks.append(words == {*VERDICT.findall(one["told"])})
        if "excess cost left" in one["told"]:
            checks.append(_left(one["told"], jury.left(labels[0])))
    return checks


def _left(told, left):
    percent = float(re.search(rf"({NUMBER})%", told)[1])
    if "under" in told:
        return 100 * left <= percent * 1.01
    return abs(percent - 100 * left) <= max(0.06 * abs(100 * left), 1e-9)


def _sizes_of(jury, said):
    """Yield each scheme that is named, its grid, and its step size for the race's target."""
    for label in re.split(", | and ", said["schemes"]):
        outcome = jury.outcomes[label]
        target = target_reached(jury) or "1e-1"
        step = outcome.findings.metrics.get(f"final/step_to_{target}", np.nan)
        yield label, [step.step_size for step in outcome.steps], step


def _grid_end(jury, said):
    """Check that the best step sizes lie at an end of what was tried."""
    checks, target = [], target_reached(jury) or "1e-1"
    for label, sizes, step in _sizes_of(jury, said):
        if np.isinf(jury.fewest(label, target)):
            step = jury.best[label].step_size
        reach = 10 ** (13 / 16) if jury.refined(label, target) else 1.0
        upwards = int(said["last"]) > np.log10(max(sizes))
        at_end = step >= max(sizes) * reach if upwards else step <= min(sizes) / reach
        checks.append(at_end and len(sizes) >= 3)
    return checks


def _grid_beyond(jury, said):
    """Check that the best step sizes lie outside the grid, and not at the end of all tried."""
    outside = [max(step / max(grid), min(grid) / step) for _, grid, step in _sizes_of(jury, said)]
    return [1 < factor < 10 ** (13 / 16) * (1 + 1e-9) for factor in outside]


def _grid_above(jury, said):
    """Check that theory's step size is below the whole grid, and two decades above the other."""
    found = [
        (jury.outcomes[label].findings.metrics["theory/step_threshold"], sizes)
        for label, sizes, _ in _sizes_of(jury, said)
    ]
    begins = min(limit for limit, _ in found) / 10.0 ** int(said["first"])
    return [100 <= begins <= 1000, *(limit < min(sizes) for limit, sizes in found)]


def _predicts(jury, said):
    ends = {label: jury.test_end(label) for label in jury.best}
    named = _split(said["schemes"])
    lowest = min(ends.values())
    best = {label for label, end in ends.items() if end <= lowest + 1.01e-6 * abs(lowest)}
    result, *doubt = _from(said, "result").split("; ")
    checks = [set(named) == best, jury.on_test(named[0], result), "median" not in result]
    others = {name for name in ends if name not in best}
    # A pair is not judged where one of the two leaves more than a tenth of its excess.
    arrived = {name for name in ends if jury.left(name) <= 0.1 + 1e-6}
    judged = {name for name in others if {name, *best} <= arrived}
    text = "; ".join(doubt)
    checks.append(("one split cannot show a difference from" in text) == bool(judged))
    return [*checks, ("not judged against" in text) == bool(others - judged)]


def _worse(jury, said):
    best = _split(said["best"])
    theirs = re.findall(r"(\S.*?) under ([\w =]+?)(?=, | and |$)", said["theirs"])
    faster = [(label, text) for text, labels in theirs for label in _split(labels)]
    return [
        "one split, which cannot show a difference" in said["how"],
        (said["schemes"], said["descend"]) == _number_of(faster),
        jury.on_test(best[0], said["least"]),
        *(jury.on_test(label, text) for label, text in faster),
        all(jury.test_end(label) > jury.test_end(best[0]) for label, _ in faster),
    ]


def _number_of(faster):
    """Return the noun and the verb of the schemes that descend faster."""
    return ("scheme", "descends") if len(faster) == 1 else ("schemes", "descend")


def _best_too(jury, said):
    ends = {label: jury.test_end(label) for label in jury.best}
    best = [label for label, end in ends.items() if near(str(end), min(ends.values()), 1e-6)]
    return [
        "one split, which cannot show a difference" in said["how"],
        (said["schemes"], said["descend"]) == _number_of(best),
        len({*map(float, ends.values())}) > 1,
    ]


def _rises(jury, said):
    checks, named = [], set()
    for one in said["schemes"].split("; "):
        label, low, at, end = re.fullmatch(
            rf"(\w+) \(from ({NUMBER}) at (its start|iteration \d+) to ({NUMBER})\)", one
        ).groups()
        at = at.split()[-1].replace("start", "0")
        costs = jury.best[label].histories["test/cost"]
        named.add(label)
        checks += [near(low, costs.min(), 1e-3), near(end, costs[-1], 1e-3)]
        checks += [costs[int(at)] == costs.min(), costs[-1] > costs.min()]
    for label in set(jury.best) - named:
        costs = jury.best[label].histories["test/cost"]
        checks.append(costs[-1] - costs.min() <= 0.0501 * max(costs[0] - costs.min(), 0))
    return checks


def _thresholds(jury, said):
    found = {label: 2 / (see.factor() * see.gram(see.z)) for label, see in jury.see.items()}
    most, least = max(found.values()), min(found.values())
    checks = [near(said["most"], most), near(said["least"], least)]
    checks.append(near(said["ratio"], most / least, 6e-3))
    for part, value in (("high", most), ("low", least)):
        checks += [near(str(found[label]), value, 1e-5) for label in _split(said[part])]
    return checks


def _same_threshold(jury, said):
    return [
        near(said["threshold"], 2 / (see.factor() * see.gram(see.z)), 0.021)
        for see in jury.see.values()
    ]


def _lost_by(jury, said):
    lost = {label: lost_directions(see) for label, see in jury.see.items()}
    named = {label for label, see in jury.see.items() if lost[label]}
    return [set(said["labels"].split("; ")) == named, int(said["lost"]) == max(lost.values())]


def _largest(jury, said):
    named = said["labels"].split("; ")
    checks = []
    for label in named:
        told = {"convergent": said["step"], "end": ""}
        checks += OF_A_SCHEME["convergent"](jury.see[label], told)
    for label in set(jury.see) - set(named):
        known = jury.outcomes[label].findings.metrics["final/largest_convergent_step"]
        checks.append(not known >= float(said["step"]))
    if said["end"]:
        known = float(said["step"]) * (1 + 1e-9)
        failed = [
            any(verdict in FAILED for size, verdict in see.verdicts.items() if size > known)
            for see in (jury.see[label] for label in named)
        ]
        checks.append(not all(failed))
    return checks


def _starts(jury, labels):
    return [jury.outcomes[label].steps[0].histories["train/cost"][0] for label in labels]


def _equal(costs, share=1e-9):
    return bool(np.ptp(costs) <= share * max(map(abs, costs)))


def _few(jury, said):
    same, others = (said[part].split("; ") for part in ("same", "others"))
    starts = {see.job.settings.start for see in (jury.see[label] for label in others)}
    return [_equal(_starts(jury, same)), starts == {"normal"}, {*same, *others} == set(jury.see)]


def _counts(jury, said):
    see = next(iter(jury.see.values()))
    shape, targets = see.scores()
    scores = np.random.default_rng(0).standard_normal(shape)
    once, twice = (see.job.cost(factor * scores, targets) for factor in (1.0, 2.0))
    return [np.allclose(2 * once, twice, rtol=1e-12), see.at_zero() == 0]


def _numbers(jury, what):
    """The numbers that a caption is about, by scheme: steps as found, others as recorded."""
    if what.endswith(" step size"):
        return {label: step.step_size for label, step in jury.best.items()}
    known = {label: one.findings.metrics for label, one in jury.outcomes.items()}
    key = door.captioned(what)
    return {label: own[key] for label, own in known.items() if np.isfinite(own.get(key, np.nan))}


def _goes_from(jury, said):
    found = _numbers(jury, said["what"])
    checks = [near(said["least"], min(found.values())), near(said["most"], max(found.values()))]
    for part, end in (("low", min), ("high", max)):
        value = end(found.values())
        checks += [near(str(found[label]), value, 1e-5) for label in _split(said[part])]
    return [*checks, float(said["least"]) <= float(said["most"])]


def _is_one(jury, said):
    found = _numbers(jury, said["what"])
    named = set(_split(said["schemes"]))
    return [named == set(found), *(near(said["value"], value) for value in found.values())]


def _converging(jury, said):
    counts = dict(re.findall(r"([\w]+) (\d+)", said["counts"]))
    found = {label: list(see.verdicts.values()) for label, see in jury.see.items()}
    return [
        counts == {label: str(own.count("converged")) for label, own in found.items()},
        {len(own) for own in found.values()} == {int(said["steps"])},
    ]


def _melting(jury, said):
    see, left = jury.see[said["scheme"]], min(jury.left(said["scheme"]), 1.0)
    step = jury.best[said["scheme"]].step_size
    checks = [near(said["step"], step, 0.06), int(said["gone"]) <= int(said["every"])]
    if see.job.settings.starts == 1:  # of several the first is drawn
        share = re.match(rf"<?({NUMBER}) %", said["left"])
        checks.append(abs(float(share[1]) / 100 - left) < 0.0051)
    return checks


def _elsewhere(see, sizes, share):
    """How far runs end from where they end on points that are moved by a share, by step size."""
    job, ends = see.job, dict.fromkeys(sizes, 0.0)
    for seed in range(3):
        noise = np.random.default_rng(seed).choice([-share, share], see.x.shape)
        moved = replace(job.dataset, x=see.x * (1 + noise))
        steps = door.descend_again(replace(job, dataset=moved), sizes, shadows=False).steps
        for step in steps:
            if step.verdict == "diverged":
                ends[step.step_size] = np.inf
            else:
                away = abs(step.histories["train/cost"][-1] - see.costs[step.step_size][-1])
                ends[step.step_size] = max(ends[step.step_size], away)
    return ends


def _by_rounding(jury, said):
    chaotic = {
        label: tuple(size for size, word in see.verdicts.items() if word == UNRANKED[0])
        for label, see in jury.see.items()
    }
    count = sum(map(len, chaotic.values()))
    checks = [count == int(said["count"])]
    checks.append(int(said["runs"]) == sum(len(see.verdicts) for see in jury.see.values()))
    checks.append((said["are"] == "is") == (said["them"] == "it") == (count == 1))
    for label, sizes in chaotic.items():
        see = jury.see[label]
        least = jury.outcomes[label].findings.metrics["theory/minimum"]
        away = _elsewhere(see, sizes, SHARE) if sizes else {}
        checks += [end > SHARE * (see.costs[size][0] - least) for size, end in away.items()]
    return checks


def _all_diverged(jury, said):
    lost = {label for label, see in jury.see.items() if {*see.verdicts.values()} == {"diverged"}}
    counted = said["who"] == f"{len(lost)} of {len(jury.see)} jobs"
    return [counted or set(re.split(r", | and ", said["who"])) == lost]


def _of_all(name):
    return lambda jury, said: [
        check for see in jury.see.values() for check in OF_A_SCHEME[name](see, said)
    ]


CHECKS = {
    "by_cost": lambda jury, said: [not jury.counted, *_ranking(jury, said)],
    "by_count": lambda jury, said: [jury.counted, *_ranking(jury, said)],
    "one_place": _ranking,
    "all_diverged": _all_diverged,
    "by_rounding": _by_rounding,
    "no_shadows": lambda jury, said: [
        not see.job.effective_settings.shadows and UNRANKED[0] not in see.verdicts.values()
        for see in jury.see.values()
    ],
    "melting": _melting,
    "no_cost": lambda jury, said: [not jury.best],
    **OF_THE_ANSWER,
    "grid_end": _grid_end,
    "grid_beyond": _grid_beyond,
    "grid_above": _grid_above,
    "predicts": _predicts,
    "predicts_unknown": lambda jury, said: [jury.tests == 0],
    "faster_predicts_worse": _worse,
    "faster_predicts_best": _best_too,
    "rises": _rises,
    "thresholds": _thresholds,
    "same_threshold": _same_threshold,
    "none_convergent": lambda jury, said: [
        "converged" not in see.verdicts.values() for see in jury.see.values()
    ],
    "largest_convergent": _largest,
    "lost_by": _lost_by,
    "counts": _counts,
    "goes_from": _goes_from,
    "is_one": _is_one,
    "converging": _converging,
    "one_function": lambda jury, said: [_equal(_starts(jury, jury.see))],
    "other_functions": lambda jury, said: [not _equal(_starts(jury, jury.see), 1e-6)],
    "other_networks": lambda jury, said: [not _equal(_starts(jury, jury.see), 1e-6)],
    "few_functions": _few,
    "note": lambda jury, said: [],
    **{
        name: _of_all(name)
        for name in (
            *("attained", "attained_unknown", "strictly", "partly", "partly_unknown"),
            *("undecided", "trivial"),
        )
    },
}


def said(sweep):
    """Return (name, values) of every sentence that is said of a sweep of one experiment."""
    return [one for part in door.answer(sweep, CAPTIONS) for one in sentences(part)]


def check(experiment, made):
    """Return the sentences said of a comparison, the claims checked, and those that are false."""
    jury, told = Jury(made), said(door.compared(experiment, made))
    claims, false = 0, []
    for name, values in told:
        results = CHECKS[name](jury, values)
        claims += len(results)
        false += [(name, values, number) for number, true in enumerate(results) if not true]
    return len(told), claims, false
