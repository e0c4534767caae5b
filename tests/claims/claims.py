"""What the sentences on a scheme claim, read from their text and checked against the points.

Independent of the code that says them: a sentence is taken apart by its template, and its numbers
are found again from the points, the histories and other linear programs.
"""

import re
from string import Formatter

import numpy as np
from scipy.optimize import linprog

from tests import door

NUMBER = r"[-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|inf)"


def _pattern(template):
    parts = []
    for words, field, form, _ in Formatter().parse(template):
        parts.append(re.escape(words))
        if field:
            again = f"(?P<{field}>" in "".join(parts)
            parts.append(f"(?P={field})" if again else f"(?P<{field}>{NUMBER if form else '.*?'})")
    return re.compile("".join(parts) + r"(?= |$)")


UNRANKED = ("decided by rounding", "diverged")  # no cost of theirs is compared


WORDS = {name: len(re.sub(r"{.*?}", "", template)) for name, template in door.TEMPLATES.items()}
PATTERNS = {name: _pattern(template) for name, template in door.TEMPLATES.items()}


def sentences(text):
    """Return (name, values) of every sentence of a paragraph; none of it may be left over.

    Of the templates that fit, the one that ends first, and of these the one with most words. A
    subject has no clauses.
    """
    found = []
    while text:
        matches = [(name, one) for name, how in PATTERNS.items() if (one := how.match(text))]
        fits = [fit for fit in matches if ";" not in fit[1].groupdict().get("who", "")]
        assert fits, f"no template makes: {text}"
        name, one = min(fits, key=lambda fit: (fit[1].end(), -WORDS[fit[0]]))
        found.append((name, one.groupdict()))
        text = text[one.end() :].strip()
    return found


class Witness:
    """What is true of one outcome, found again."""

    def __init__(self, job, outcome):
        self.job, self.outcome = job, outcome
        self.x, self.y = job.dataset.x, job.dataset.y
        self.z = np.asarray(outcome.scheme.transform(self.x), dtype=float)
        self.traits = door.traits(job.cost)
        self.verdicts = {step.step_size: step.verdict for step in outcome.steps}
        self.costs = {step.step_size: step.histories["train/cost"] for step in outcome.steps}
        count = "train/misclassifications"
        self.counts = {step.step_size: step.histories.get(count) for step in outcome.steps}

    def scores(self):
        """The shape of scores of one model, and the targets, as the cost takes them."""
        classes = self.job.dataset.classes
        one = classes == 0 or (classes == 2 and not self.traits.score_per_class)
        targets = 2.0 * self.y - 1 if one and classes else self.y
        return (1, 1 if one else classes, len(self.y)), targets

    def at_zero(self):
        """The mean cost at zero weights."""
        shape, targets = self.scores()
        return float(self.job.cost(np.zeros(shape), targets)[0]) / len(self.y)

    def gram(self, points):
        """The largest eigenvalue of the Gram matrix, by a norm."""
        return np.linalg.norm(np.insert(points, 0, 1, axis=1), 2) ** 2 / len(points)

    def factor(self):
        return self.traits.curvature or 1.0

    def falls(self, size):
        costs = self.costs[size]
        return self.verdicts[size] != "diverged" and np.all(np.diff(costs) <= 1e-12 * abs(costs[0]))

    def margins(self):
        """Each point's own scores less every other class's, as rows over all weights."""
        points = np.insert(self.z - self.z.mean(axis=0), 0, 1, axis=1)
        size = np.abs(points).max(axis=0)
        axes, spread, _ = np.linalg.svd(points / np.where(size > 0, size, 1), full_matrices=False)
        points = axes[:, spread > 1e-11 * spread[0]] * np.sqrt(len(points))  # the same span
        classes = self.job.dataset.classes
        if classes == 2:
            return points * (2 * self.y - 1)[:, None]
        rows = []
        for point, label in zip(points, self.y):
            for other in set(range(classes)) - {label}:
                row = np.zeros((classes, len(point)))
                row[label], row[other] = point, -point
                rows.append(row.ravel())
        return np.array(rows)

    def case(self):
        """The case by Gordan's and Stiemke's theorems; None for too many margins."""
        if self.traits.piecewise or self.traits.quadratic:
            return "attained"
        rows = self.margins() if len(self.z) * self.job.dataset.classes <= 1200 else None
        if rows is None:
            return None
        count = len(rows)
        sums, right = np.vstack([rows.T, np.ones(count)]), np.r_[np.zeros(rows.shape[1]), 1.0]
        if linprog(np.zeros(count), A_eq=sums, b_eq=right).status == 2:
            return "strictly"
        all_above = linprog(
            np.r_[np.zeros(count), -1.0],
            A_ub=np.column_stack([-np.eye(count), np.ones(count)]),
            b_ub=np.zeros(count),
            A_eq=np.column_stack([sums, np.zeros(len(sums))]),
            b_eq=right,
        )
        return "attained" if all_above.status == 0 and -all_above.fun > 1e-9 else "partly"


def near(text, value, share=2e-3):
    return abs(float(text) - value) <= share * max(abs(value), 1e-300)


def _bound(see, said):
    threshold = float(said["threshold"])
    below = [size for size in see.costs if size < threshold * 0.999]
    return [
        near(said["lipschitz"], see.factor() * see.gram(see.z)),
        near(said["threshold"], 2 / (see.factor() * see.gram(see.z))),
        all(see.falls(size) for size in below),
    ]


def _at_start(see, said):
    exact = see.gram(see.z) / see.job.dataset.classes  # of multiclass softmax, at zero weights
    return [
        see.job.cost.__name__ == "multiclass_softmax",
        near(said["start"], exact),
        near(said["threshold"], 2 / exact),
    ]


def _distances(points):
    some = points[:: max(1, len(points) // 40)]
    return np.linalg.norm(some[:, None] - some[None], axis=2)


def _parts(see, said):
    words, x, z = said["parts"], see.x, see.z
    spread = z.std(axis=0)
    alone = z.shape == x.shape
    if alone:
        for before, after in zip(x.T, z.T):
            if before.std() > 0 and after.std() > 0:
                alone = alone and abs(np.corrcoef(before, after)[0, 1]) > 1 - 1e-9
    kept = np.allclose(_distances(x), _distances(z), rtol=1e-5, atol=1e-9 * _distances(x).max())
    moved = np.abs(z.mean(axis=0)) <= 1e-5 * np.maximum(spread, 1e-9 * np.abs(x).max())
    return [
        ("rotates" in words) == (not alone),
        ("scales" in words) == (not kept),
        "centres" not in words or bool(np.all(moved)),
    ]


def _here(see, said):
    named = "L" if see.traits.curvature else "the Gram matrix's largest eigenvalue"
    return [
        said["what"] == named,
        near(said["here"], see.factor() * see.gram(see.z)),
        near(said["raw"], see.factor() * see.gram(see.x)),
    ]


def _scaled(see):
    centred = see.x - see.x.mean(axis=0)
    size = centred.std(axis=0)
    return centred / np.where(size > 1e-12, size, 1.0)


def _ridge(see, said):
    values = see.outcome.scheme.eigenvalues_
    live = np.count_nonzero(~see.outcome.scheme.dropped_)
    checks = [near(said["live"], live), near(said["share"], 1e-7 / values.max(), 0.06)]
    if not hasattr(see.outcome.scheme, "shrinkage_"):  # its own variances are not the points'
        spread = np.atleast_2d(np.cov(see.z.T, bias=True))
        after = np.sort(np.linalg.eigvalsh(spread))[::-1][:live]
        touched = np.count_nonzero(after < 0.99)
        checks.append(touched == int(float(said.get("touched", 0))))
        checks += [near(said["least"], after.min(), 0.02)] if "least" in said else []
    return checks


def lost_directions(see):
    """How many directions of standardized points, by singular values, the scheme has not."""
    spread = see.x.std(axis=0)
    scaled = (see.x - see.x.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return np.linalg.matrix_rank(scaled) - np.count_nonzero(~see.outcome.scheme.dropped_)


def _falling(see, said):
    size = next(one for one in see.costs if near(said["falling"], one, 1e-9))
    below = [one for one in see.costs if one <= size]
    larger = [one for one in see.costs if one > size]
    checks = [all(see.falls(one) for one in below), see.costs[size][-1] < see.costs[size][0]]
    return [*checks, ("the largest tried" in said["end"] + said["ratio"]) == (not larger)]


def _convergent(see, said):
    size = next(one for one in see.costs if near(said["convergent"], one, 1e-9))
    checks = [see.verdicts[size] == "converged"]
    failed = ("cycling", *UNRANKED)
    first = min(_converged(see))
    checks.append(not any(see.verdicts[one] in failed for one in see.costs if first < one < size))
    if "no larger" in said["end"]:
        checks.append(not any(see.verdicts[one] in failed for one in see.costs if one > size))
    return checks


def _converged(see):
    return [size for size, verdict in see.verdicts.items() if verdict == "converged"]


def _best(see, said):
    size = next(one for one in see.costs if near(said["step"], one, 1e-9))
    ends = {one: see.costs[one][-1] for one in see.costs if see.verdicts[one] not in UNRANKED}
    excess = see.costs[size][0] - see.outcome.findings.metrics["theory/minimum"]
    return [
        see.verdicts[size] == said["verdict"],
        size in ends,
        ends[size] <= min(ends.values()) + 1.001e-6 * abs(excess),
    ]


def _fewest(see, said):
    size = next(one for one in see.costs if near(said["step"], one, 1e-9))
    ends = {one: see.counts[one][-1] for one in see.costs if see.verdicts[one] not in UNRANKED}
    return [see.verdicts[size] == said["verdict"], ends[size] == min(ends.values())]


def _trivial(see, said):
    return [see.at_zero() == 0, *(np.min(costs) >= 0 for costs in see.costs.values() if len(costs))]


def _side(see, said):
    step = float(see.outcome.steps[see.outcome.best].step_size)
    return [(said["side"] == "above") == (float(said["threshold"]) > step)]


def _above(see, said):
    step = see.outcome.steps[see.outcome.best].step_size
    limit = 2 / (see.factor() * see.gram(see.z))
    return [step > limit, near(said["ratio"], step / limit, 6e-3)]


def _least(name):
    def check(see, said):
        case = see.case()
        checks = [] if case is None else [case == name.removesuffix("_unknown")]
        if "minimum" in said:
            seen = min(np.min(costs) for costs in see.costs.values() if len(costs))
            checks.append(float(said["minimum"]) <= seen * (1 + 1e-5) + 1e-12)
            checks.append(float(said["minimum"]) >= 0)
            if name == "partly":
                checks.append(float(said["minimum"]) > 0)
        return checks

    return check


CHECKS = {
    "exact": _bound,
    "bound": _bound,
    "at_start": _at_start,
    "parts": _parts,
    "untouched": lambda see, said: [np.array_equal(see.x, see.z)],
    "no_map": lambda see, said: [
        np.linalg.matrix_rank(see.x) + 1 >= len(see.x) or not _is_affine(see)
    ],
    "here": _here,
    "centring": lambda see, said: [
        near(said["centred"], see.factor() * see.gram(see.x - see.x.mean(axis=0)))
    ],
    "scaling": lambda see, said: [near(said["standard"], see.factor() * see.gram(_scaled(see)))],
    "least_possible": lambda see, said: [
        near(said["here"], see.factor(), 0.021),
        near(said["here"], see.factor() * see.gram(see.z)),
    ],
    "ridge_idle": _ridge,
    "ridge_holds": _ridge,
    "lost": lambda see, said: [lost_directions(see) == int(said["lost"])],
    "dropped": lambda see, said: [
        lost_directions(see) == 0,
        int(said["dead"]) == np.count_nonzero(see.outcome.scheme.dropped_),
    ],
    "falling": _falling,
    "convergent": _convergent,
    "none_converged": lambda see, said: [not _converged(see)],
    "none_ranked": lambda see, said: [set(see.verdicts.values()) <= set(UNRANKED)],
    "best": _best,
    "fewest": _fewest,
    "trivial": _trivial,
    "above": _above,
    "above_start": _side,
    "above_best": _side,
    "no_threshold": lambda see, said: [see.traits.piecewise == "linear"],
    "undecided": lambda see, said: [],
    **{
        name: _least(name)
        for name in ("attained", "attained_unknown", "strictly", "partly", "partly_unknown")
    },
}


def _is_affine(see):
    points = np.insert(see.x, 0, 1, axis=1)
    left = see.z - points @ np.linalg.lstsq(points, see.z, rcond=None)[0]
    return np.abs(left).max() <= 1e-9 * np.abs(see.z).max()


def check(job, outcome):
    """Return the sentences said, the claims checked, and those that are false."""
    said = sentences(door.explanation(job.dataset, outcome))
    see = Witness(job, outcome)
    claims, false = 0, []
    for name, values in said:
        results = CHECKS[name](see, values)
        claims += len(results)
        false += [(name, values, number) for number, true in enumerate(results) if not true]
    return len(said), claims, false
