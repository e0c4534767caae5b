"""Time pca_sphere's fit against scikit-learn's PCA on MNIST, 60,000 x 784, in turns.

python -m tests.benchmarks.fit_sphere [TURNS]     prints the median ratio; at most 1.5 is wanted
"""

import sys
import time

import numpy as np
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_info

from normbench.normalizers import PCASphere
from tests.real_data import contrast_normalized


def seconds(fit):
    tick = time.perf_counter()
    fitted = fit()
    return time.perf_counter() - tick, fitted


def main(turns=9):
    x = contrast_normalized("train")
    if x is None:
        sys.exit("train-images-idx3-ubyte.gz not found; set NORMBENCH_DATA to its folder")
    ours, theirs = [], []
    for _ in range(turns):
        elapsed, sphere = seconds(lambda: PCASphere().fit(x))
        ours.append(elapsed)
        elapsed, pca = seconds(lambda: PCA(svd_solver="covariance_eigh").fit(x))
        theirs.append(elapsed)
    # scikit-learn divides by P - 1. Measured: 2.1e-15 of the largest eigenvalue.
    expected = pca.explained_variance_ * (len(x) - 1) / len(x)
    difference = np.abs(sphere.eigenvalues_ - expected).max() / expected[0]
    assert difference < 1e-12, f"the spectra differ by {difference:.1e} of the largest eigenvalue"
    kernels = {pool.get("architecture", pool["internal_api"]) for pool in threadpool_info()}
    print(f"points {x.shape}, kernels {', '.join(sorted(kernels))}, {turns} turns")
    print(f"pca_sphere fit        {np.median(ours):7.3f} s (median)")
    print(f"PCA(covariance_eigh)  {np.median(theirs):7.3f} s (median)")
    print(f"median ratio          {np.median(np.divide(ours, theirs)):7.2f}   (at most 1.5)")
    print(f"spectra differ by     {difference:7.1e} of the largest eigenvalue")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
