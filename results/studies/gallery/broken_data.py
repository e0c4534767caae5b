"""The numbers of `research/broken_data`."""

from normbench import names
from normbench.results.store.runs import Sweep

KIND, SCALE = names.setting("dataset.kind"), names.setting("dataset.scale")


def numbers(sweep: Sweep) -> dict[str, float]:
    """Return `KIND_SCALE_FORMULA_QUANTITY`, and `worst_FORMULA_QUANTITY`, the largest of all.

    What `record=[formulas]` kept of each job; the worst of those that are finite.
    """
    schemes = sweep.of_role(names.SCHEME).set_index("label")
    found: dict[str, float] = {}
    for label, parts in sweep.arrays(sweep.of_role(names.SCHEME), "formulas").items():
        place = f"{schemes.loc[label, KIND]}_{float(schemes.loc[label, SCALE]):g}"
        for quantity in set(parts) - {"formula"}:
            for formula, value in zip(parts["formula"], parts[quantity]):
                found[f"{place}_{formula}_{quantity}"] = float(value)
                worst = f"worst_{formula}_{quantity}"
                found[worst] = max(found.get(worst, 0.0), float(value))  # NaN is no larger
    return found
