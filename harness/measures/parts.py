"""What the scheme does to the points, as its own map tells: centres, shifts, scales, rotates."""

import numpy as np

from normbench import names
from normbench.engine.scheme.probed import CHECKED, effects, probe
from normbench.engine.scheme.under import Under
from normbench.measures.contract import Findings, Finished, Measure
from normbench.theory.spectra import MOST_FEATURES


def take(made: Finished) -> Findings:
    """Return the tags; where the scheme is no affine map, only the tag that says so."""
    z = made.z
    if isinstance(z, Under):
        found, z = z.map, z[np.unique(np.linspace(0, len(z) - 1, CHECKED).astype(int))]
    else:
        found = probe(made.scheme, made.dataset.x, z)
    if found is None:
        return Findings(tags={names.AFFINE.key: "false"})
    done = effects(found, z)
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
