"""What the scheme does to the points, as its own map tells: centres, shifts, scales, rotates."""

from normbench.engine.affine import affine, parts
from normbench.measures.contract import Findings, Finished, Measure
from normbench.results import names
from normbench.theory.spectra import DENSE


def take(made: Finished) -> Findings:
    """Return the tags; a scheme that is no affine map has one alone."""
    found = affine(made.scheme, made.dataset.x, made.z)
    if found is None:
        return Findings(tags={names.AFFINE.key: "false"})
    done = parts(found, made.z)
    tags = {
        names.CENTRES.key: done.centres,
        names.SHIFTS.key: done.shifts,
        names.SCALES.key: done.scales,
        names.ROTATES.key: done.rotates,
    }
    words = {key: str(does).lower() for key, does in tags.items()}
    return Findings(tags={names.AFFINE.key: "true"} | words)


def _applies(made: Finished) -> bool:
    return made.dataset.x.shape[1] <= DENSE


MEASURE = Measure(take, applies=_applies)
