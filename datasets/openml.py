"""Load data sets of openml.org, by name or id, through scikit-learn."""

import socket
import warnings
from typing import Any

from normbench.datasets.dataset import Dataset, UserError
from normbench.datasets.download import no_new_folders
from normbench.datasets.tables import TableOptions, table_dataset
from normbench.datasets.values import check_path

TIMEOUT_SECONDS = 20.0  # that a host may take to answer


def openml(
    data_dir: str,
    name: str | None = None,
    id: int | None = None,
    version: int | str = "active",
    target: str | int | None = None,
    **table: Any,
) -> Dataset:
    """Return a data set of OpenML, named as there, and cached in `data_dir/openml`.

    Args:
        data_dir: The folder of downloaded data.
        name: The name of the data set; either name or id.
        id: The id of the data set, a whole number, which determines the version, too.
        version: The version of a name: a number, or `active` for the one that OpenML recommends.
        target: The target column; None for the one that OpenML declares, or unlabelled points where
            it declares none.
        **table: The other fields of `TableOptions`.

    Raises:
        UserError: The data set cannot be fetched, or its table cannot be used.
    """
    from sklearn.datasets import fetch_openml

    setting = f"dataset.name={name}" if id is None else f"dataset.id={id}"
    folder = check_path("data_dir", data_dir, "name a folder, such as data_dir=data") / "openml"
    previous_timeout = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT_SECONDS)  # scikit-learn has no such option
    try:
        with no_new_folders(folder), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of retries, and of versions that OpenML has dropped
            # The frame has all columns, whichever the target is.
            bunch = fetch_openml(
                name=name if name is None else str(name),
                data_id=id,
                version=version,
                data_home=str(folder),
                as_frame=True,
                parser="pandas",
                n_retries=1,
                delay=0.1,
            )
    except Exception as error:  # of the network, the options, or an answer that is none
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise UserError(
            f"{setting}: cannot be had from openml.org ({reason}), nor is it in {folder}; write "
            "dataset.name=mnist_784 or dataset.id=554, or check the network"
        ) from error
    finally:
        socket.setdefaulttimeout(previous_timeout)
    targets: list[Any] = [*(bunch.target_names or ())] if target is None else [target]
    if len(targets) > 1:
        raise UserError(
            f"{setting}: has the targets {', '.join(targets)}; choose one with dataset.target, and "
            "leave out the others with dataset.drop"
        )
    options = TableOptions(target=targets[0] if targets else None, **table)
    dataset_name = f"openml_{id}" if name is None else str(name)
    return table_dataset(dataset_name, bunch.frame, options, source=bunch.url)
