"""Where runs start: the same for every scheme of a split, another for every split."""

import numpy as np

from normbench.engine.settings import Settings
from normbench.engine.start import starts


def drawn(*draws, seed=3):
    settings = Settings((1.0,), start="normal", starts=2, seed=seed, draws=draws)
    return starts(settings, (1, 4))


def test_splits_and_draws_of_the_data_start_elsewhere():
    assert np.array_equal(drawn(1, 0), drawn(1, 0))
    different = [drawn(1, 0), drawn(2, 0), drawn(0, 1), drawn(0, 0), drawn(0, 0, seed=4)]
    for number, one in enumerate(different):
        for other in different[:number]:
            assert not np.any(one == other)


def test_the_first_draw_starts_where_the_seed_alone_does():
    plain = 0.1 * np.random.default_rng(3).standard_normal((2, 1, 4))
    assert np.array_equal(drawn(0, 0), plain)
    assert np.array_equal(drawn(), plain)
