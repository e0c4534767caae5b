"""An affine map as a film: its last frame is the map, and its parts are rotations and scales."""

import numpy as np
import pytest

from normbench.normalizers import morph

CENTRE, SPREAD = np.array([3.0, -2.0]), np.ones(2)


def matrices():
    rng = np.random.default_rng(0)
    drawn = [rng.standard_normal((2, 2)) for _ in range(40)]
    return [np.diag([2.0, 0.5]), np.diag([-1.0, 3.0]), np.array([[0.0, 1], [2, 0]]), *drawn]


@pytest.mark.parametrize("matrix", matrices())
def test_parts_put_together_are_the_matrix(matrix):
    parts = morph.factor_map(matrix)
    first = np.diag(parts.signs) @ morph.rotation(parts.turn)
    made = morph.rotation(parts.turn_back) @ np.diag(parts.scales) @ first
    assert made == pytest.approx(matrix, abs=1e-14)  # measured 2e-15
    assert (parts.scales > 0).all()
    assert parts.signs.prod() == np.sign(np.linalg.det(matrix))


def test_rotations_go_the_shortest_way():
    for matrix in matrices():
        stretched = matrix.T @ matrix  # as of ZCA: there and back
        parts = morph.factor_map(stretched)
        assert parts.turn_back == pytest.approx(-parts.turn, abs=1e-9)
        assert abs(parts.turn) <= np.pi / 4 + 1e-9
        whitened = np.diag([3.0, 0.5]) @ morph.rotation(3.0 * np.arctan(matrix[0, 0]))
        assert morph.factor_map(whitened).turn_back == 0  # as of PCA-sphering
        mirrored = morph.factor_map(np.diag([1.0, -1.0]) @ whitened)
        assert abs(mirrored.turn) <= np.pi / 2 + 1e-9
        assert mirrored.turn_back == 0


@pytest.mark.parametrize("matrix", matrices())
def test_frames_lead_from_the_features_to_the_map_by_small_moves(matrix):
    image = np.array([0.3, -0.1])
    film = morph.make_frames(matrix, CENTRE, image, SPREAD)
    assert np.array_equal(film.matrix[0], np.eye(2))
    assert np.array_equal(film.image[0], CENTRE)
    assert np.array_equal(film.matrix[-1], matrix)
    assert np.array_equal(film.image[-1], image)
    assert film.keys[0] == 0
    assert film.keys[-1] == len(film.matrix) - 1 == morph.FRAMES_PER_PART * (len(film.keys) - 1)
    # Drawn along its signs, no frame is far from the one before it: measured 0.5 of it.
    drawn = film.signs[:, :, None] * film.matrix
    steps = np.linalg.norm(np.diff(drawn, axis=0), axis=(1, 2))
    assert (steps < 0.7 * np.linalg.norm(drawn[1:], axis=(1, 2))).all()
    # And the determinant of what is drawn never changes its sign.
    assert (np.linalg.det(drawn) > 0).all()


def test_each_part_moves_alone_and_evenly():
    turned = np.diag([0.1, 4.0]) @ morph.rotation(-1.0)
    film = morph.make_frames(turned, CENTRE, np.zeros(2), SPREAD)
    words = ("raw", "centred", "rotated by 57°", "scaled by 0.1, 4")
    assert film.labels == words
    assert film.mixed == (False, False, True, True)
    moving, turning, scaling = np.split(np.arange(1, len(film.matrix)), 3)
    assert (film.matrix[moving] == np.eye(2)).all()
    assert film.image[moving] == pytest.approx(
        np.outer(1 - np.arange(1, 13) / 12, CENTRE), abs=1e-15
    )
    angles = np.arctan2(film.matrix[turning, 1, 0], film.matrix[turning, 0, 0])
    assert angles == pytest.approx(-np.arange(1, 13) / 12)
    sizes = np.linalg.norm(film.matrix[scaling], axis=2)
    assert np.log(sizes) == pytest.approx(np.outer(np.arange(1, 13) / 12, np.log([0.1, 4.0])))
    assert (film.image[turning[0] :] == 0).all()


def test_parts_that_change_nothing_are_left_out():
    assert morph.make_frames(np.eye(2), CENTRE, CENTRE, SPREAD) is None
    assert morph.make_frames(np.eye(2), CENTRE, np.zeros(2), SPREAD).labels == ("raw", "centred")
    scaled = morph.make_frames(2 * np.eye(2), CENTRE, 2 * CENTRE, SPREAD)
    assert scaled.labels == ("raw", "scaled by 2")
    moved = morph.make_frames(np.eye(2), CENTRE, np.ones(2), SPREAD)
    assert moved.labels == ("raw", "moved")
    back = morph.make_frames(np.array([[1.0, 1.0], [1.0, 2.5]]), CENTRE, np.zeros(2), SPREAD)
    assert back.labels[2:] == ("rotated by 27°", "scaled by 0.5, 3", "rotated back by 27°")
