"""Effects of an affine scheme on the points: whether it centres, shifts, scales, rotates."""

from normbench import names
from normbench.engine.scheme.probed import find_effects, probe
from normbench.measures.contract import Findings, FinishedJob, Measure
from normbench.theory.sizes import MAX_ROWS


def take(job: FinishedJob) -> Findings:
    """Return the tag `affine`, and for an affine scheme a tag for each of four effects.

    The effects are those of `find_effects`, in the same order; each tag is `true` or `false`. An
    offset shifts; one that gives the points mean 0 also centres.
    """
    affine = probe(job.scheme, job.dataset.x, job.z)
    if affine is None:
        return Findings(tags={names.AFFINE.key: "false"})
    tags = (names.CENTRES, names.SHIFTS, names.SCALES, names.ROTATES)
    effect_tags = {
        tag.key: str(does).lower() for tag, does in zip(tags, find_effects(affine, job.z))
    }
    return Findings(tags={names.AFFINE.key: "true"} | effect_tags)


def _applies(job: FinishedJob) -> bool:
    """Return whether there are few enough features to probe: one transformed point for each."""
    return job.dataset.x.shape[1] <= MAX_ROWS


MEASURE = Measure(take, applies=_applies)
