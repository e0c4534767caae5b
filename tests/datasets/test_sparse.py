"""Sparse points: from matrices, npz and svmlight files; what is wrong with them is one line."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from normbench.datasets import UserError, make_dataset, split
from normbench.datasets.arrays import npz, svmlight
from normbench.datasets.made import text
from normbench.datasets.on_disk.sparse import SparsePoints
from normbench.datasets.sampling import draw_subset, with_outliers


@pytest.fixture
def matrix():
    drawn = sparse.random(40, 7, density=0.3, random_state=0, format="csr")
    return sparse.csr_array(drawn)


@pytest.fixture
def data(matrix):
    return make_dataset("mine", matrix, np.arange(40) % 2, class_names=["a", "b"], source="here")


def test_rows_are_read_with_their_zeros(matrix, data):
    dense = matrix.toarray()
    centred = SparsePoints(matrix, dense.mean(axis=0))
    for rows in (slice(None), slice(3, 9), slice(4, 2), np.array([5, 1]), dense[:, 0] > 0):
        np.testing.assert_array_equal(data.x[rows].toarray(), dense[rows])
        expected = dense[rows] - dense.mean(axis=0)
        np.testing.assert_array_equal(centred[rows].toarray(), expected)
    assert data.x.density == pytest.approx(matrix.nnz / dense.size)


@pytest.mark.parametrize("kind", [sparse.coo_array, sparse.csc_matrix, sparse.lil_array])
def test_any_sparse_matrix_is_taken_and_left_as_it_is(matrix, data, kind):
    other = make_dataset("mine", kind(matrix), data.y, class_names=["a", "b"], source="here")
    assert other.fingerprint == data.fingerprint
    twice = sparse.csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2, 2])), shape=(2, 2))
    points = SparsePoints.of_matrix(twice, "float64")
    assert points.toarray().tolist() == [[0, 2], [0, 0]]
    assert twice.nnz == 2


def test_other_entries_have_another_fingerprint(matrix, data):
    changed = matrix.copy()
    changed.data[3] += 1
    other = make_dataset("mine", changed, data.y, class_names=["a", "b"], source="here")
    assert other.fingerprint != data.fingerprint
    moved = sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(40, 8))
    other = make_dataset("mine", moved, data.y, class_names=["a", "b"], source="here")
    assert other.fingerprint != data.fingerprint


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_an_entry_that_is_no_number_is_named(matrix, value):
    matrix.data[4] = value
    row = int(np.searchsorted(matrix.indptr, 4, side="right")) - 1
    column = matrix.indices[4]
    with pytest.raises(UserError, match=rf"feature 'x{column}' of point {row} \(counted from 0\)"):
        make_dataset("mine", matrix, source="here")


def test_complex_numbers_are_refused(matrix):
    with pytest.raises(UserError, match="complex128 is none"):
        make_dataset("mine", matrix * 1j, source="here")


def test_parts_of_sparse_points_stay_sparse(matrix, data):
    parts = split(data, 0.25, 0)
    rows = np.vstack([parts.x.toarray(), parts.x_test.toarray()])
    assert sorted(map(tuple, rows)) == sorted(map(tuple, matrix.toarray()))
    assert isinstance(draw_subset(data, 20, 0).x, SparsePoints)


def test_a_setting_that_needs_all_points_says_that_they_are_sparse(data):
    with pytest.raises(UserError, match="those of mine are sparse; leave it out"):
        with_outliers(data, "cells", 0.1, 10.0, 0)


@pytest.mark.parametrize("write", ["scipy", "numpy"])
def test_an_archive_of_csr_arrays_is_sparse_points(tmp_path, matrix, write):
    file = tmp_path / "mine.npz"
    arrays = {name: getattr(matrix, name) for name in ("data", "indices", "indptr", "shape")}
    if write == "scipy":
        sparse.save_npz(file, matrix)
        found = npz(str(file), y=None)
    else:
        np.savez(file, **arrays, y=np.arange(40) % 2)
        found = npz(str(file))
        assert found.classes == 2
    np.testing.assert_array_equal(found.x.toarray(), matrix.toarray())


def test_an_archive_with_another_format_or_wrong_indices_is_refused(tmp_path, matrix):
    file = tmp_path / "mine.npz"
    sparse.save_npz(file, matrix.tocsc())
    with pytest.raises(UserError, match=r"a sparse matrix as b'csc', not as CSR"):
        npz(str(file), y=None)
    indices = np.full_like(matrix.indices, 99)
    np.savez(file, data=matrix.data, indices=indices, indptr=matrix.indptr, shape=matrix.shape)
    with pytest.raises(UserError, match="cannot be read as an archive of plain arrays"):
        npz(str(file), y=None)


def test_a_file_of_svmlight_is_sparse_points(tmp_path, matrix):
    file = tmp_path / "mine.svmlight"
    dump_svmlight_file(matrix, np.arange(40) % 2, str(file))
    found = svmlight(str(file), features=9)
    assert (found.x.shape, found.classes, found.name) == ((40, 9), 2, "mine")
    np.testing.assert_allclose(found.x.toarray()[:, :7], matrix.toarray(), rtol=1e-12)
    file.write_text("1 2:a\n")
    with pytest.raises(UserError, match=r"cannot be read as svmlight points .*; every line is"):
        svmlight(str(file))


def test_text_is_the_same_sparse_and_dense():
    counted, dense = text(sparse=True), text()
    np.testing.assert_array_equal(counted.x.toarray(), dense.x)
    assert counted.x.density < 0.02
    assert not dense.read_from_rows  # so that no error names dataset.points_in
    with pytest.raises(UserError, match=r"dataset.sparse=maybe: must be true or false"):
        text("maybe")
