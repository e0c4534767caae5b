"""Every sentence that is said of runs: the words, as templates, and what is put into them.

The conditions are elsewhere: `reasons` for theory, `answer`, `heldout`, `problems` and `judged`
for the rest. What is said is made from what is recorded, numbers and tags, and nothing else.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

TEMPLATES = {
    # the threshold
    "no_threshold": "No threshold from curvature: {why}.",
    "start_only": "The curvature at the start is {start:.4g}, so 2/L is {threshold:.4g} there; the "
    "cost has no bound that holds everywhere.",
    "exact": "The curvature is L = {lipschitz:.4g} everywhere, so descent converges exactly where "
    "the step size is below 2/L = {threshold:.4g}.",
    "bound": "The curvature is at most L = {lipschitz:.4g}, so the cost is certain to fall where "
    "the step size is below 2/L = {threshold:.4g}.",
    "other_optimizer": "The curvature is at most L = {lipschitz:.4g}, and 2/L = {threshold:.4g} is "
    "a step size of plain gradient descent; this is another optimizer.",
    "start_of_another": "It speaks of plain gradient descent alone.",
    "at_start": "At the start the curvature is {start:.4g}, {share:.3g} of that bound: 2/L is "
    "{threshold:.4g} there.",
    "beyond": "The condition number is more than {limit:.2g}: some directions are lost in "
    "rounding, and no history is predicted.",
    # which part of the scheme did it
    "untouched": "This scheme leaves the points as they are.",
    "parts": "This scheme {parts}.",
    "no_map": "This scheme is no affine map of the features.",
    "here": "Under it {what} is {here:.4g}; of the points as they are it is {raw:.4g}.",
    "centring": "Centring alone would make it {centred:.4g}.",
    "scaling": "Centring, and each feature scaled to variance 1, would make it {standard:.4g}.",
    "least_possible": "{here:.4g} is the least that a bias allows.",
    # the ridge
    "ridge_idle": "The ridge of {ridge:.2g}, {share:.2g} of the largest eigenvalue, touched none "
    "of {live:.0f} live directions.",
    "ridge_holds": "The ridge of {ridge:.2g}, {share:.2g} of the largest eigenvalue, holds live "
    "directions down: it took more than 1 percent of the variance of {touched:.0f} of {live:.0f}, "
    "and left {least:.3g} of it in the smallest.",
    "lost": "{lost:.0f} of {all:.0f} directions were lost in rounding, for the scales of features "
    "differ too much; scaled to variance 1 first, they live.",
    "dropped": "{dead:.0f} directions that carry only rounding were dropped.",
    # what the grid showed
    "falling": "On the grid the cost fell throughout up to step {falling:g}{end}{ratio}.",
    "convergent": "The largest step size that levels is {convergent:g}{end}.",
    "none_levelled": "No step size of the grid levelled.",
    "none_ranked": "There is no best step: each diverged or is decided by rounding.",
    "shown": "The step shown, by choice, is {step:g}, {verdict}.",
    "best": "The best step is {step:g}, {verdict}.",
    "fewest": "The best step is {step:g}, {verdict}: it leaves the fewest points misclassified.",
    "above": "It is {ratio:.3g} times 2/L.",
    "above_start": "2/L of the curvature at the start is {threshold:.4g}, {side} that step.",
    "above_best": "2/L of the curvature at its last weights is {threshold:.4g}, {side} that step.",
    # the least cost
    "attained": "Some weights attain the least cost, {minimum:.6g}.",
    "attained_unknown": "Some weights attain the least cost; how low it is, is not known "
    "({source}).",
    "strictly": "The classes are strictly separable: the least cost is 0, at infinity, and targets "
    "are shares of the cost at zero weights.",
    "partly": "The classes are partly separable: the least cost, {minimum:.6g}, is above 0, and no "
    "weights attain it.",
    "partly_unknown": "The classes are partly separable: the least cost is above 0, no weights "
    "attain it, and how low it is, is not known ({source}).",
    "undecided": "Whether weights attain the least cost is not decided; the lowest that is known "
    "is {minimum:.6g}.",
    "trivial": "Zero weights have a cost of 0, and no run went below it.",
    # a comparison
    "same_threshold": "Theory allows the same step size under every scheme, 2/L = {threshold:.4g}.",
    "thresholds": "Theory allows the largest step size under {high} (2/L = {most:.4g}), "
    "{ratio:.3g} times that of {low} ({least:.4g}).",
    "none_convergent": "No step size of the grid levels under any scheme.",
    "largest_convergent": "The largest step size of the grid that levels is {step:g} "
    "({labels}){end}.",
    "lost_by": "Rounding hid up to {lost:.0f} directions from {labels}: the scales of features "
    "differ too much for that, and pca_cor, or a chain with standard first, keeps them.",
    # theory that is not there, and jobs that were judged again
    "none_ran": "No step was made: every job failed.",
    "no_step": "No step was made: what the schemes did to the points is in the figures.",
    "note": "Note: {of}{note}.",
    "judged_again": "Judged again, {schemes}: what belonged to another step or other rules is left "
    "out ({what}); to have it, descend again.",
    # what has to be known before schemes are compared
    "counts": "The cost of {experiments} grows in proportion to the weights and is 0 at zero "
    "weights, so that costs of two runs tell nothing of each other: best step sizes, targets and "
    "ranks go by misclassified training points, and a target of 1e-2 is 1e-2 of all points "
    "misclassified.",
    "other_functions": "The start is not one function ({experiments}): start=normal draws the same "
    "weights for every scheme, which are another function under each, with a cost of its own at "
    "step 0; start=same_function draws one function.",
    "few_functions": "The start is one function of the training points under {same}; under "
    "{others} no weights make it, and start=normal draws another ({experiments}).",
    "one_function": "The start is the same function of the training points under every scheme "
    "({experiments}); on test points it may differ along directions that a scheme dropped.",
    "own_functions": "cost.l2 is put on the transformed weights, so that each scheme minimizes "
    "another function: its targets are its own, and its costs are not compared with those of "
    "others; cost.l2_in=features puts it on the weights of the untransformed features.",
    "idle_seed": "{name} changes nothing here: its {count:d} values give equal results, which "
    "count as one{remedy}.",
    # the answer
    "by_cost": "{after}, from the lowest cost up: {places}{medians}.",
    "by_excess": "{after}, by what is left of each scheme's own excess: {places}{medians}.",
    "by_count": "{after}, from the fewest misclassified points up: {places}{medians}.",
    "one_place": "{after}: {places}{medians}.",
    "counted": "Of {problems:d} problems, the {lowest} on how many (and the mean rank): {wins}; "
    "each scheme at its {which} step size.",
    "no_descent": "No descent was made: the figures show the points under each scheme.",
    "no_cost": "No scheme has a cost to compare.",
    "all_diverged": "{who} diverged at every step size.",
    "by_rounding": "{count:d} of {runs:d} runs {are} decided by rounding: another processor may "
    "end {them} elsewhere, and nothing is concluded from {them}.",
    "no_shadows": "Whether rounding decides where runs end was not looked for (shadows=false).",
    "some_failed": "{failed:d} of {jobs:d} jobs failed.",
    "fastest": "Fastest{grid}: {schemes}.",
    "fastest_open": "Fastest: {schemes}; {splits} {doubt}.",
    "takes": "{who} {does} {what} in {count}{others}{over}.",
    "over_problems": "{parts}.",
    # the cause
    "why": "Why: {slow} (condition number {most}); {fast} ({least}){suits}.",
    "rounder": "That is not the whole cause: {scheme} makes it rounder still ({least}) and is "
    "slower.",
    "grid_end": "The best step size of {schemes} is at the end of the grid: "
    "step_sizes='${{decades:{first:d},{last:d}}}' looks further.",
    "grid_beyond": "The best step size of {schemes} lies beyond the grid, within a decade.",
    "grid_above": "Every step size is above 2/L of {schemes}, so that nothing is known of smaller "
    "ones: step_sizes='${{decades:{first:d},{last:d}}}' begins below.",
    "starts_there": "Speed is not compared: {schemes} {starts} with no more than {share} of "
    "{what}, and no scheme meets a stricter target.",
    "nobody": "No scheme {does} {what}{within}{grid}{end}.",
    "nobody_alone": "{scheme} does not {do} {what}{within}{grid}{end}.",
    "predicts_unknown": "Predicts best: not known; dataset.test_fraction=0.25 holds points out.",
    "predicts": "Predicts best: {schemes}, {result}{over}{doubt}.",
    "faster_predicts_worse": "The faster descent predicts worse, {how}: {theirs} under {faster}, "
    "against {least} under {best}.",
    "faster_predicts_best": "The faster descent predicts best, too{how}.",
    "rises": "The test cost rises again under {schemes}.",
    # what a figure shows
    "mean_ranks": "Over {problems:d} problems, the mean rank by iterations to {target} of the "
    "excess, and the share of them brought to it: {places}.",
    "goes_from": "{what} goes from {least:.4g} under {low} to {most:.4g} under {high}.",
    "is_one": "{what} is {value:.4g} under {schemes}.",
    "levelling": "So many of {steps:d} step sizes level: {counts}.",
    "melting": "Step {step} melts {gone:d} of {every:d} layers of {scheme}, and {left} of the "
    "excess is left.",
    "serving": "Step {step} serves {count:d} of {every:d} directions of {scheme}, which hold "
    "{share} of the excess{model}.",
    "not_served": "The curvature at the start does not explain step {step} of {scheme}: it "
    "predicts that {predicted} of the excess is gone, and {seen} is; the curvature changed on "
    "the way.",
    "filmed": "From raw points to {scheme}, the condition number goes from {first} to {last}, and "
    "the iterations to 1 percent at step 1/L from {before} to {after}.",
    "losing": "Of the variance of {scheme}, {share} is lost.",
}
# What stands in sentences: the places of a ranking, with semicolons between them, and doubts.
PARTS = {
    "cost": "{labels}, {cost:.4g}{at} ({told})",
    "low": "{labels}, under {cost:.2g}{at} ({told})",
    "excess": "{labels}, {left}{at} ({told})",
    "count": "{labels}, {count:g} misclassified{at} ({told})",
    "needs": "{labels} {need} {count}",
    "not_there": "{labels} did not get there{within}{grid}",
    "perhaps_not": "{labels} did not get there for certain{within}{grid}: rounding decides",
    "job_failed": "{labels} failed",
    "none_finite": "{labels} diverged at every step size",
    # a cause
    "raw_valley": "raw features stretch the cost into a narrow valley",
    "raw_stretched": "raw features stretch the cost",
    "raw_round": "raw features leave it round",
    "raw_rounder": "raw features leave it rounder",
    "scheme_valley": "{label} leaves the cost a narrow valley",
    "scheme_stretched": "{label} leaves the cost stretched",
    "scheme_round": "{label} makes it round",
    "scheme_rounder": "{label} makes it rounder",
    "suits": ", so one step size suits every direction",
    "doubt": "; {splits:d} {does} not tell {it} apart from {others}",
}


class Said(NamedTuple):
    """A sentence: its template's name, and what stands in it."""

    name: str
    values: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The sentence."""
        return TEMPLATES[self.name].format(**self.values)


def said(name: str, /, **values: Any) -> Said:
    """Return a sentence by its template's name."""
    return Said(name, values)


def listed(words: Sequence[str]) -> str:
    """Return words as a sentence lists them: a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def paragraph(sentences: Sequence[Said]) -> str:
    """Return sentences as one text."""
    return " ".join(each.text for each in sentences)
