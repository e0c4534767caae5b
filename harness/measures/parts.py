"""What the scheme does to the points, as its own map tells: centres, shifts, scales, rotates."""

from normbench import names
from normbench.engine.scheme.probed import effects, probe
from normbench.measures.contract import Findings, Finished, Measure
from normbench.theory.spectra import MOST_FEATURES


def take(made: Finished) -> Findings:
    """Return the tags; where the scheme is no affine map, only the tag that says so."""
    found = probe(made.scheme, made.dataset.x, made.z)
    if found is None:
        return Findings(tags={names.AFFINE.key: "false"})
    done = effects(found, made.z)
    tags = {
        names.CENTRES.key: done.centres,
        names.SHIFTS.key: done.shifts,
        names.SCALES.key: done.scales,
        names.ROTATES.key: done.rotates,
    }
    words = {key: str(does).lower() for key, does in tags.items()}
    return Findings(tags={names.AFFINE.key: "true"} | words)


def _applies(made: Finished) -> bool:
    return made.dataset.x.shape[1] <= MOST_FEATURES


MEASURE = Measure(take, applies=_applies)
