"""What the scheme does to the points, as its own map tells: centres, shifts, scales, rotates."""

from normbench import names
from normbench.engine.scheme.probed import find_effects, probe
from normbench.measures.contract import Findings, Finished, Measure
from normbench.theory.spectra import MAX_SPECTRUM_FEATURES


def take(made: Finished) -> Findings:
    """Return the tags; where the scheme is no affine map, only the tag that says so."""
    found = probe(made.scheme, made.dataset.x, made.z)
    if found is None:
        return Findings(tags={names.AFFINE.key: "false"})
    tags = (names.CENTRES, names.SHIFTS, names.SCALES, names.ROTATES)
    words = {tag.key: str(does).lower() for tag, does in zip(tags, find_effects(found, made.z))}
    return Findings(tags={names.AFFINE.key: "true"} | words)


def _applies(made: Finished) -> bool:
    return made.dataset.x.shape[1] <= MAX_SPECTRUM_FEATURES


MEASURE = Measure(take, applies=_applies)
