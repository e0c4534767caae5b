"""Archives of arrays are opened as they were written, or not at all."""

from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
import pytest

from normbench.results.safe import files


def test_an_archive_that_numpy_saved_is_opened(tmp_path):
    file = tmp_path / "arrays.npz"
    np.savez(file, x=np.arange(3))
    with files.open_stored_arrays(file) as stream, np.load(stream) as arrays:
        np.testing.assert_array_equal(arrays["x"], np.arange(3))


@pytest.mark.parametrize("compressed", ["all members", "one member"])
def test_an_archive_with_a_compressed_member_is_refused(tmp_path, compressed):
    file = tmp_path / "arrays.npz"
    with ZipFile(file, "w") as archive:
        archive.writestr("x.npy", bytes(range(200)), ZIP_DEFLATED)
        kind = ZIP_DEFLATED if compressed == "all members" else ZIP_STORED
        archive.writestr("y.npy", bytes(range(200)), kind)
    with pytest.raises(ValueError, match="not what was written"), files.open_stored_arrays(file):
        pass
