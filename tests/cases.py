"""What the tests walk over: every cost and every optimizer under conf/."""

from itertools import combinations, product
from pathlib import Path

from normbench.choices import import_target, options
from normbench.costs.declaration import traits

CONF = Path(__file__).resolve().parent.parent / "conf"


def names(group):
    """Return the options of a group, in order."""
    return sorted(file.stem for file in (CONF / group).glob("*.yaml"))


def tasks(cost):
    """Return the tasks that a cost is for."""
    return traits(cost).tasks


def formula(cost):
    """Return the cost as autograd alone knows it."""
    return getattr(cost, "formula", cost)


def takes(cost, classes):
    """Return whether a cost takes this number of scores a point."""
    per_class = traits(cost).score_per_class
    if classes == 1:
        return not per_class and {"binary", "regression"} & set(tasks(cost))
    return per_class or (per_class is None and classes > 2 and "multiclass" in tasks(cost))


def classifies(cost, classes):
    """Return whether points can be misclassified, at this number of scores a point."""
    return classes > 1 or "binary" in tasks(cost)


COSTS = {name: import_target("cost", options("cost", name)["_target_"]) for name in names("cost")}
# A cost's name, and a number of scores a point that it takes.
CASES = [(n, c) for n, cost in COSTS.items() for c in (1, 2, 3, 10) if takes(cost, c)]
FEW_CASES = [(n, c) for n, c in CASES if c in (1, 3)]


def pairs(allows=lambda **row: True, **settings):
    """Return few rows of settings in which every pair of two settings' values stands together.

    allows: whether a row may be; a pair that none may have is left out.
    """
    rows = [dict(zip(settings, values)) for values in product(*settings.values())]
    rows = [(row, {*combinations(row.items(), 2)}) for row in rows if allows(**row)]
    wanted, chosen = set().union(*(own for _, own in rows)), []
    while wanted:
        row, own = max(rows, key=lambda each: len(wanted & each[1]))
        chosen.append(tuple(row.values()))
        wanted -= own
    return chosen
