"""The templates of all sentences of the output, and the class that fills them.

The conditions for a sentence are elsewhere: in `reasons` for theory; in `results.answer`,
`compare.heldout`, `compare.problems`, `report.profile` and `report.captions` for the rest. The
fields of a template are recorded numbers and tags only.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

TEMPLATES = {
    # the threshold
    "no_threshold": "Theory promises no step size here: {why}.",
    "start_only": "At the start the largest curvature is L = {start:.4g}, so steps below 2/L = "
    "{threshold:.4g} lower the cost there; no bound holds everywhere.",
    "exact": "The largest curvature is L = {lipschitz:.4g} everywhere, so gradient descent "
    "converges exactly where the step size is below 2/L = {threshold:.4g}.",
    "bound": "The curvature is nowhere larger than L = {lipschitz:.4g}, so with any step size "
    "below 2/L = {threshold:.4g} the cost falls in every iteration.",
    "other_optimizer": "The curvature is nowhere larger than L = {lipschitz:.4g}; the limit 2/L = "
    "{threshold:.4g} is one of plain gradient descent, and this is another optimizer.",
    "of_all_points": "The curvature is nowhere larger than L = {lipschitz:.4g}; the limit 2/L = "
    "{threshold:.4g} is one of steps that see all points, and these see a batch.",
    "start_of_all_points": "That limit is one of steps that see all points, and these see a batch.",
    "start_of_another": "That limit is one of plain gradient descent, and this is another "
    "optimizer.",
    "at_start": "At the start the largest curvature is {start:.4g}, {share:.3g} times that bound, "
    "which gives 2/L = {threshold:.4g} there.",
    "beyond": "The condition number is above {limit:.2g}: rounding hides some directions, so no "
    "history is predicted.",
    # the effect of the transformation
    "untouched": "This scheme leaves the features as they are.",
    "parts": "This scheme {parts}.",
    "no_map": "This scheme is not an affine map (a matrix and a shift) of the features.",
    "here": "Under this scheme {what} is {here:.4g}; of raw features it is {raw:.4g}.",
    "centring": "Centring alone would give {centred:.4g}.",
    "scaling": "Standardizing would give {standard:.4g}.",
    "least_possible": "A model with a bias cannot have less than {here:.4g}.",
    # the ridge
    "ridge_idle": "The constant {ridge:.2g} that protects against division by zero, {share:.3g} of "
    "the largest eigenvalue, changed none of {live:.0f} {directions}.",
    "ridge_holds": "The constant {ridge:.2g} that protects against division by zero, {share:.3g} "
    "of the largest eigenvalue, matters here: {touched:.0f} of {live:.0f} {directions} {are} "
    "scaled too little by more than 1 percent, and the smallest has a variance of {least:.3g} "
    "instead of 1; normalizer.ridge=0 avoids it.",
    "ridge_matters": "The constant {ridge} that protects against division by zero matters under "
    "{schemes}: {most}{touched:.0f} of {live:.0f} {directions} {are} scaled too little; "
    "{setting}=0 avoids it.",
    "lost_features": "{schemes} {leave} {count:.0f} of {all:.0f} {features} without variation "
    "({features_named}), so no descent sees {them}; standard keeps {them}.",
    "unscaled_features": "{schemes} cannot scale {count:.0f} of {all:.0f} {features} "
    "({features_named}): {they} {vary} too little for scikit-learn, and {stay} as before; give "
    "{them} in a smaller unit, or use standard.",
    "lost": "{lost:.0f} of {all:.0f} directions {were} lost in rounding, because the scales of the "
    "features differ too much; standardizing first would keep {them}.",
    "dropped": "{dead:.0f} {directions} {were} dropped, because {they} {hold} rounding errors "
    "alone.",
    # the step sizes of the grid
    "falling": "The largest step size up to which the cost fell in every iteration is {falling:g}"
    "{end}{ratio}.",
    "convergent": "The largest step size that converged is {convergent:g}{end}.",
    "none_converged": "No step size that was tried converged.",
    "none_ranked": "There is no best step size: every run diverged or is decided by rounding.",
    "shown": "The step size shown, by choice, is {step:g} ({verdict}).",
    "best": "The best step size is {step:g} ({verdict}).",
    "fewest": "The best step size is {step:g} ({verdict}): it leaves the fewest points "
    "misclassified.",
    "above": "That is {ratio:.3g} times 2/L.",
    "above_start": "By the curvature at the start, 2/L is {threshold:.4g}, {side} that step size.",
    "above_best": "By the curvature where the descent ended, 2/L is {threshold:.4g}, {side} that "
    "step size.",
    # the least cost
    "attained": "The least cost is {minimum:.6g}, and some weights reach it.",
    "attained_unknown": "Some weights reach the least cost; its value is not known ({source}).",
    "strictly": "A linear model separates the classes perfectly, so the cost can be pushed towards "
    "0 for ever; progress is counted as a share of the cost at zero weights.",
    "partly": "A linear model separates some of the points perfectly, so the cost can be pushed "
    "towards {minimum:.6g} for ever, but no weights reach that.",
    "partly_unknown": "A linear model separates some of the points perfectly, so no weights reach "
    "the least cost, which is above 0; its value is not known ({source}).",
    "undecided": "Whether some weights reach the least cost could not be decided{value}.",
    "lowest_of_scheme": "The least cost of a network is not known; the lowest that "
    "this scheme saw, zero weights included, is {minimum:.6g}.",
    "lowest_of_comparison": "The least cost of a network is not known; the lowest seen in this "
    "comparison is {minimum:.6g}.",
    "trivial": "Zero weights have a cost of 0, and no run went below it.",
    # a comparison
    "same_threshold": "Theory promises the same step sizes under every scheme, those below 2/L = "
    "{threshold:.4g}.",
    "thresholds": "Theory promises larger step sizes under {high} (below 2/L = {most:.4g}), "
    "{ratio:.3g} times those of {low} (below 2/L = {least:.4g}).",
    "none_convergent": "No step size that was tried converged under any scheme.",
    "none_on_every_split": "No step size that was tried converged on every split under any scheme.",
    "largest_convergent": "Of all schemes, the largest step size that converged is {step:g} "
    "({labels}){end}.",
    "lost_by": "Rounding hid up to {lost:.0f} {directions} from {labels}, because the scales of "
    "the features differ too much; pca_cor, or a chain that begins with standard, keeps {them}.",
    # missing theory, and jobs that were judged again
    "none_ran": "Every job failed, so there is nothing to compare.",
    "no_step": "No descent was made (iterations=0): the figures show what the schemes did to the "
    "points.",
    "note": "Note: {of}{note}.",
    "judged_again": "{schemes}: judged again, by other rules or at another step size; what "
    "belonged to the earlier ones is left out ({what}); the command of the comparison, given again "
    "with these rules, finds it out.",
    # reservations on a comparison
    "counts": "The costs of {experiments} are not compared: such a cost is 0 at zero weights, and "
    "smaller weights lower it without a better line; best step sizes, targets and ranks go by "
    "misclassified training points instead, and a target of 1 % means 1 % of all points "
    "misclassified.",
    "other_functions": "The start differs between the schemes ({experiments}): start=normal draws "
    "the same weights for all, and these are another function of the features under each scheme, "
    "with another starting cost; start=same_function draws one function for all.",
    "other_networks": "The start differs between the schemes ({experiments}): each draws the same "
    "weights, and these are another function of the features under each scheme, with another "
    "starting cost.",
    "drawn_networks": "The weights at the start are drawn ({experiments}), because zero weights "
    "of a network are a stationary point; another seed draws others.",
    "unrefined": "refine=true has no effect on a network ({experiments}): its targets follow from "
    "the lowest cost of the comparison, which is not known while a job runs.",
    "above_zero": "Converged means at rest, with little left of the excess of a run's own start; "
    "under {schemes} such a run ends above the cost of zero weights ({experiments}).",
    "own_lowest": "Of a network, converged means at rest near the lowest cost that the scheme "
    "itself saw; measured by the lowest cost seen in this comparison ({minimum:.4g}), {schemes} "
    "did not converge.",
    "few_functions": "The start is one function of the training points under {same}; no weights "
    "under {others} make that function, so start=normal draws another there ({experiments}).",
    "one_function": "The start is the same function of the training points under every scheme "
    "({experiments}); on test points it may differ along directions that a scheme dropped.",
    "own_functions": "cost.l2 penalizes the transformed weights, so each scheme minimizes another "
    "function: each has targets of its own, and costs of different schemes are not compared; "
    "cost.l2_in=features penalizes the weights of the raw features instead, which are the same "
    "function for all.",
    "idle_seed": "{name} has no effect here: its {count:d} values give equal results, which count "
    "as one{remedy}.",
    # the answer
    "by_cost": "{after}, from the lowest cost up: {places}{medians}.",
    "by_excess": "{after}, by how much of each scheme's own excess cost is left: "
    "{places}{medians}.",
    "by_count": "{after}, from the fewest misclassified points up: {places}{medians}.",
    "one_place": "{after}: {places}{medians}.",
    "counted": "Of {count:d} {problems}, the {lowest} on how many (and the mean rank): {wins}; "
    "each scheme at its {which} step size.",
    "no_descent": "No descent was made (iterations=0): the figures show the points under each "
    "scheme.",
    "no_cost": "No scheme has a cost to compare.",
    "all_diverged": "{who} diverged at every step size.",
    "some_diverged": "On some of {repeats}, {who} diverged at the step size that is best over all "
    "of them, and {have} no cost to compare.",
    "by_rounding": "{count:d} of {runs:d} runs {are} decided by rounding errors: another processor "
    "may end {them} elsewhere, and nothing is concluded from {them}.",
    "no_shadows": "Whether rounding errors decide where runs end was not examined (shadows=false).",
    "some_failed": "{failed:d} of {jobs:d} jobs failed.",
    "fastest": "Fastest{grid}: {schemes}.",
    "fastest_open": "Fastest: {schemes}; {splits} {doubt}.",
    "takes": "{who} {does} {what} in {count}{others}{over}.",
    "ended_lowest": "Ended lowest: {schemes}.",
    "fell": "{who} cost {did} from {start} to {end}{within}{others}{over}.",
    "own_ends": "Each scheme minimizes another function; the cost {falls}{within}{over}.",
    "unknown_least": "How much lower the cost can go is not known.",
    "uncounted": "How fast {who} {descend} is not known: the target follows from the costs of "
    "another job, and the costs of single starts are not recorded.",
    "over_problems": "{parts}.",
    # the cause
    "why": "Why: {slow} (condition number {most}); {fast} ({least}){suits}.",
    "rounder": "That is not the whole cause: {schemes} {make} it rounder still ({least}) and {are} "
    "slower.",
    "grid_end": "The best step size of {schemes} is at the end of those tried{splits}: "
    "step_sizes='${{decades:{first:d},{last:d}}}' looks further.",
    "grid_beyond": "The best step size of {schemes} is beyond those of the grid, by less than a "
    "factor of ten.",
    "grid_above": "Every step size tried is above 2/L of {schemes}, so nothing is known of smaller "
    "ones: step_sizes='${{decades:{first:d},{last:d}}}' begins below.",
    "starts_there": "Speed is not compared: {schemes} {starts} with no more than {share} of "
    "{what}.",
    "nobody": "No scheme {does} {what}{within}{grid}{end}.",
    "nobody_alone": "{scheme} does not {do} {what}{within}{grid}{end}.",
    "predicts_unknown": "Whether the faster scheme also predicts better was not tested; to test "
    "it, add dataset.test_fraction=0.25.",
    "predicts": "Predicts best: {schemes} ({result}{over}){doubt}.",
    "faster_predicts_worse": "The {schemes} that {descend} faster {predict} worse, {how}: "
    "{theirs}, against {least} under {best}.",
    "faster_predicts_best": "The {schemes} that {descend} faster {predict} best, too{how}.",
    "rises": "The test cost rises again under {schemes}.",
    # findings of figures
    "mean_ranks": "Over {count:d} {problems}, the mean rank by the {unit} until {target} of "
    "the excess cost is left (and the share of problems where that happens): {places}.",
    "goes_from": "{what} goes from {least:.4g} under {low} to {most:.4g} under {high}.",
    "is_one": "{what} is {value:.4g} under {schemes}.",
    "converging": "Step sizes that converged, of {steps:d}: {counts}.",
    "melting": "At step size {step}, {gone:d} of {every:d} {layers} of {scheme} {are} gone, and "
    "{left} of the excess cost{over} is left.",
    "filmed": "From raw points to {scheme}, the condition number of the cost goes from {first} to "
    "{last}, and the iterations until 1 percent of the excess cost is left, at step size 1/L, from "
    "{before} to {after}.",
    "saturating": "Beyond a batch of {batch:g} larger batches save less than half of the steps "
    "under {scheme}{others}.",
    "losing": "{scheme} loses {share} of the variance.",
}
# Clauses inside sentences: the ranks of a ranking, causes and doubts.
CLAUSES = {
    "cost": "{labels}, {cost:.4g}{at} ({told})",
    "low": "{labels}, under {cost:.2g}{at} ({told})",
    "excess": "{labels}, {left}{at} ({told})",
    "count": "{labels}, {count:g} misclassified{at} ({told})",
    "needs": "{labels} {need} {count}",
    "not_there": "{labels} did not get there{within}{grid}",
    "perhaps_not": "{labels} did not get there for certain{within}{grid}: rounding decides",
    "job_failed": "{labels} failed",
    "none_finite": "{labels} diverged at every step size",
    "lowest_known": "; the lowest cost known is {minimum:.6g}",
    "ended": "{labels} ended at {cost}{step}",
    "unsure": "rounding decides where {labels} ended",
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
    "doubt": "; {doubt} difference from {others}",
    "not_judged": "; not judged against {others}, because a descent has not arrived",
}
# The singular of words that are fields of templates, by the plural, which is the field's name.
SINGULARS = {
    "are": "is",
    "were": "was",
    "have": "has",
    "hold": "holds",
    "descend": "descends",
    "make": "makes",
    "predict": "predicts",
    "they": "it",
    "them": "it",
    "schemes": "scheme",
    "directions": "direction",
    "features": "feature",
    "leave": "leaves",
    "vary": "varies",
    "stay": "stays",
    "layers": "layer",
    "problems": "problem",
}


class Sentence(NamedTuple):
    """A sentence: the name of its template, and the values of the template's fields."""

    name: str
    values: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The template with its fields filled in."""
        return TEMPLATES[self.name].format(**self.values)


def make_sentence(name: str, /, **values: Any) -> Sentence:
    """Return a sentence by its template's name.

    Args:
        name: A key of `TEMPLATES`; positional, since a template may have a field `name`.
        **values: The value of each field of the template.
    """
    return Sentence(name, values)


def agree(count: float, *words: str) -> dict[str, str]:
    """Return words in the number of a count, by the names of their fields.

    Args:
        count: How many things the words are about.
        *words: Keys of `SINGULARS`.
    """
    return {word: SINGULARS[word] if count == 1 else word for word in words}


def join_phrases(phrases: Sequence[str]) -> str:
    """Join phrases as a list within a sentence, such as `a, b and c`.

    Phrases are separated by semicolons if one of them contains a comma: `a, x; b, y`.
    """
    if any(", " in phrase for phrase in phrases):
        return "; ".join(phrases)
    return " and ".join([", ".join(phrases[:-1]), phrases[-1]] if len(phrases) > 1 else phrases)


def paragraph(sentences: Sequence[Sentence]) -> str:
    """Join sentences into one text; empty for none."""
    return " ".join(sentence.text for sentence in sentences)
