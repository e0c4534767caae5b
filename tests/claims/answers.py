"""What the answer and its cause claim, checked against the histories of the jobs."""

import re

import numpy as np

from tests.claims.claims import UNRANKED, near
from tests.claims.jury import NUMBER

TARGETS = {"99": "1e-2", "90": "1e-1", "1": "1e-2", "10": "1e-1"}  # by what is removed, or left
GRID = " on this grid"
COUNT = re.compile(
    rf"(?P<most>at most )?(?P<count>\d+)(?: iterations?)?"
    rf"(?: \(step sizes? (?P<sizes>{NUMBER}(?:(?:, | and ){NUMBER})*)\))?"
)
ROUND = 10.0


def labels_of(words):
    return re.split(r", | and ", words)


def target_of(what):
    return TARGETS[re.search(r"\d+", what)[0]]


def goal_of(jury, target):
    return min(jury.goal(label, target) for label in jury.see)


def fastest_of(jury, target):
    """Return the schemes of fewest iterations, up to rounding of the target; empty without."""
    counts = {label: jury.fewest(label, target) for label in jury.see}
    return {label for label, count in counts.items() if count == min(counts.values()) < np.inf}


def target_reached(jury):
    """Return the strictest target that a scheme meets; None for none."""
    met = [t for t in ("1e-2", "1e-1") if any(np.isfinite(jury.fewest(one, t)) for one in jury.see)]
    return met[0] if met else None


def fastest(jury, said):
    target = target_reached(jury)
    named, grid = set(labels_of(said["schemes"])), bool(said["grid"])
    best = min(jury.fewest(label, target) for label in jury.see)
    return [
        all(jury.takes(label, target, f"{best:.0f}") for label in named),
        named >= fastest_of(jury, target),
        grid != any(jury.refined(label, target) for label in jury.see),
    ]


def takes(jury, said):
    target = target_of(said["what"])
    fields = list(said)
    text = "".join(said[field] for field in fields[fields.index("count") :])
    first, *others = text.split("; ")
    who = said["who"]
    named = fastest_of(jury, target) if who in ("It", "They") else {who}
    checks = [("misclassified" in said["what"]) == jury.counted, target == target_reached(jury)]
    checks += _taken(jury, target, named, first)
    seen = set(named)
    for words in others:
        if " need" in words:
            labels, _, count = re.split(r" (needs?) ", words, maxsplit=1)
            checks += _taken(jury, target, labels_of(labels), count)
        else:
            labels = re.split(" did not| diverged| failed", words)[0]
            checks += _missed(jury, target, labels_of(labels), words)
        seen |= set(labels_of(labels))
    return [*checks, seen == set(jury.see)]


def _mixed(jury, target):
    """Whether finer step sizes were tried for some schemes and not for all."""
    return len({bool(jury.refined(label, target)) for label in jury.see}) == 2


def _taken(jury, target, labels, words):
    one = COUNT.fullmatch(words)
    most = _mixed(jury, target) and not all(jury.refined(label, target) for label in labels)
    checks = [bool(one["most"]) == most]
    checks += [jury.takes(label, target, one["count"]) for label in labels]
    for size in labels_of(one["sizes"] or ""):
        checks += [any(_at(jury, label, target, size, one["count"]) for label in labels)]
    return checks


def _at(jury, label, target, size, count):
    """Whether a step size takes about so many iterations: of neighbours the middle one counts."""
    grid = {step.step_size: step for step in jury.outcomes[label].steps}
    step = next((step for known, step in grid.items() if near(size, known, 5e-3)), None)
    if step is None:
        number = round(16 * np.log10(float(size)))
        step = jury.finer(label, [number])[number]
        if not near(size, step.step_size, 6e-3):
            return False
    goals = [goal_of(jury, target) * (1 + more) for more in (-2e-6, 0, 2e-6)]
    return any(jury.count(label, step, goal) <= float(count) for goal in goals)


def _missed(jury, target, labels, words):
    iterations = re.search(r" in (\d+)", words)
    checks = []
    for label in labels:
        see = jury.see[label]
        checks.append(np.isinf(jury.fewest(label, target, -2e-6)))
        checks.append(not iterations or int(iterations[1]) == see.job.settings.iterations)
        diverged = set(see.verdicts.values()) == {"diverged"}
        checks.append(("diverged at every" in words) == diverged)
        on_grid = _mixed(jury, target) and not jury.refined(label, target)
        above = list(_ends_above(jury, label, goal_of(jury, target)))
        checks.append(diverged or (GRID in words) == on_grid)
        checks.append(diverged or ("for certain" in words) == (not all(above)))
    return checks


def _ends_above(jury, label, goal):
    """Yield whether the runs that rounding decides end above a goal."""
    for size, verdict in jury.see[label].verdicts.items():
        if verdict == "decided by rounding":
            (step,) = [s for s in jury.outcomes[label].steps if s.step_size == size]
            yield jury.values(label, step)[-1] > goal


def nobody(jury, said):
    checks = [np.isinf(jury.fewest(label, "1e-1", -2e-6)) for label in jury.see]
    fields = list(said)
    _, _, end = "".join(said[field] for field in fields[fields.index("what") :]).partition(": ")
    if end:
        labels, _, rest = re.split(r" (comes?) closest", end, maxsplit=1)
        ends = {label: jury.left(label) for label in jury.best}
        least, named = min(ends.values()), labels_of(labels)
        checks.append(all(ends[name] <= least + 1e-6 * len(named) for name in named))
        checks.append(abs(float(re.search(NUMBER, rest)[0]) - 100 * least) <= 6 * least + 1e-3)
    return checks


def starts_there(jury, said):
    target = TARGETS[said["share"].split()[0]]
    return [jury.fewest(label, target) == 0 for label in labels_of(said["schemes"])]


def condition(see):
    """The condition number of the points with a bias, by their singular values."""
    values = np.linalg.svd(np.insert(see.z, 0, 1, axis=1), compute_uv=False)
    live = values > values[0] * max(see.z.shape) * np.finfo(float).eps
    return float((values[0] / values[live][-1]) ** 2)


def _named(jury, words):
    """Return who a part of the cause is about: a scheme by its label, or the raw features."""
    label = words.split()[0]
    if label in jury.see:
        return [label]
    return [one for one, see in jury.see.items() if np.array_equal(see.x, see.z)]


def _near(text, value):
    bounded = text.startswith("more than")
    number = float(re.search(NUMBER, text)[0])
    return value >= number / 2 if bounded else near(str(number), value, 0.06 if value < 1e12 else 1)


def why(jury, said):
    target = target_reached(jury) or "1e-1"
    (slow,), (fast,) = _named(jury, said["slow"]), _named(jury, said["fast"])
    most, least = condition(jury.see[slow]), condition(jury.see[fast])
    counts = {label: jury.fewest(label, target) for label in (slow, fast)}
    checks = [_near(said["most"], most), _near(said["least"], least), most > 9 * least]
    checks.append(counts[fast] == min(jury.fewest(label, target) for label in jury.see))
    behind = counts[slow] > counts[fast] or jury.left(slow) > jury.left(fast)
    checks += [behind, ("valley" in said["slow"]) == (most >= 1e3)]
    checks.append(said["fast"].endswith("rounder") == (least > ROUND))
    if said["suits"]:  # by the best step size of a quadratic
        iterations = jury.see[fast].job.settings.iterations
        checks.append(((least - 1) / (least + 1)) ** iterations < 0.37)
    return checks


def rounder(jury, said):
    target = target_reached(jury) or "1e-1"
    named = labels_of(said["schemes"])
    own = condition(jury.see[named[0]])
    best = fastest_of(jury, target) or {min(jury.best, key=jury.left)}
    return [
        _near(said["least"], own),
        any(1.9 * own <= condition(jury.see[label]) for label in best),
        not best & set(named),
        all(abs(condition(jury.see[label]) / own - 1) < 1e-5 for label in named),
    ]


def lowest_ends(jury):
    """Return the lowest cost that each scheme ended at, finer step sizes included."""
    ends = {}
    for label, outcome in jury.outcomes.items():
        finer = jury.finer(label, jury.tag(label).get("numbers", ())).values()
        steps = [step for step in (*outcome.steps, *finer) if step.verdict not in UNRANKED]
        if steps:
            ends[label] = min(step.histories["train/cost"][-1] for step in steps)
    return ends


def ended_lowest(jury, said):
    ends = lowest_ends(jury)
    most = min(ends.values()) + 1e-6 * jury.start(min(ends, key=ends.get))
    return [set(labels_of(said["schemes"])) == {k for k, end in ends.items() if end <= most}]


def fell(jury, said):
    (end,) = re.match(rf"({NUMBER})", said["end"]).groups()
    ends = lowest_ends(jury)
    others = re.findall(rf"(\w[\w ,]*) ended at ({NUMBER})", said["others"])
    return [
        (said["did"] == "fell") == (float(end) <= float(said["start"])),
        _near(end, min(ends.values())),
        *(_near(cost, ends[label]) for labels, cost in others for label in labels_of(labels)),
    ]


CHECKS = {
    "fastest": fastest,
    "takes": takes,
    "nobody": nobody,
    "starts_there": starts_there,
    "why": why,
    "rounder": rounder,
    "ended_lowest": ended_lowest,
    "fell": fell,
    "unknown_least": lambda jury, said: [
        "false" in {one.findings.tags["minimum_reached"] for one in jury.outcomes.values()}
    ],
}
