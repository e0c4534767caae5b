"""Points of text: how often each word stands in each line of scikit-learn's own descriptions."""

import numpy as np

from normbench.datasets.dataset import Dataset, make_dataset
from normbench.datasets.values import check_switch

DESCRIBED = ("breast_cancer", "diabetes", "digits", "iris", "linnerud", "wine")
MIN_WORDS = 3  # of a line; shorter ones are left out


def text(sparse: bool = False) -> Dataset:
    """Return the lines of six descriptions of data sets that scikit-learn ships, as word counts.

    The class of a line is the data set that it describes. A feature is a word, and counts how often
    the word stands in the line.

    Args:
        sparse: Whether the points stay sparse. Then only those schemes can be applied that keep
            zeros, or that are folded into the weights. Otherwise the points are an array.
    """
    from sklearn import datasets
    from sklearn.feature_extraction.text import CountVectorizer

    check_switch("dataset.sparse", sparse)
    lines, classes = [], []
    for index, name in enumerate(DESCRIBED):
        for line in getattr(datasets, f"load_{name}")().DESCR.splitlines():
            if len(line.split()) >= MIN_WORDS:
                lines.append(line)
                classes.append(index)
    vectorizer = CountVectorizer(dtype=np.float64)
    counts = vectorizer.fit_transform(lines)
    return make_dataset(
        "text",
        counts if sparse else counts.toarray(),
        np.array(classes),
        class_names=DESCRIBED,
        feature_names=[str(word) for word in vectorizer.get_feature_names_out()],
        source="scikit-learn: the lines of its data sets' descriptions",
    )
