"""Which comparisons have networks."""

import pandas as pd
import pytest

from normbench import names
from normbench.results.compare.problems import has_networks


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, False),
        ({"model": ["linear", "linear"]}, False),
        ({"model": ["linear", "mlp"]}, True),
        ({"model": ["linear", None]}, False),
        ({"model": ["linear", "linear"], "model.normalize": ["none", "batch"]}, True),
        ({"model": ["linear", "linear"], "model.normalize": ["none", "none"]}, False),
    ],
)
def test_a_network_is_another_model_or_a_normalized_linear_one(settings, expected):
    columns = {names.setting(key): values for key, values in settings.items()}
    schemes = pd.DataFrame({"label": ["a", "b"], **columns})
    assert has_networks(schemes) == expected
