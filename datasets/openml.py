"""Load data sets of openml.org, by name or id, through scikit-learn."""

import socket
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError, URLError

from normbench.datasets.dataset import Dataset, UserError
from normbench.datasets.download import no_empty_folders
from normbench.datasets.tables import TableOptions, Target, table_dataset
from normbench.datasets.values import check_integer, check_path

TIMEOUT_SECONDS = 20.0  # that a host may take to answer


def openml(
    data_dir: str,
    name: str | None = None,
    id: int | None = None,
    version: int | str = "active",
    target: Target = None,
    drop: Sequence[str | int] = (),
    encode: Sequence[str | int] = (),
    fill: str | None = None,
    missing: Sequence[str | float] = (),
    task: str | None = None,
    merge_labels: bool = False,
) -> Dataset:
    """Return a data set of OpenML, named as there, and cached in `data_dir/openml`.

    Args:
        data_dir: The folder of downloaded data.
        name: The name of the data set; either name or id.
        id: The id of the data set, a whole number, which determines the version, too.
        version: The version of a name: a number, or `active` for the one that OpenML recommends.
        target: The target column; None for the one that OpenML declares, or unlabelled points where
            it declares none.
        drop: As for csv files.
        encode: As for csv files.
        fill: As for csv files.
        missing: As for csv files.
        task: As for csv files.
        merge_labels: As for csv files.

    Raises:
        UserError: The data set cannot be fetched, or its table cannot be used.
    """
    from sklearn.datasets import fetch_openml

    if (name is None) == (id is None):  # both, or neither
        raise UserError(
            f"dataset.name={name}, dataset.id={id}: it takes one of the two, "
            "such as dataset.name=mnist_784 or dataset.id=554"
        )
    if version != "active":
        version = check_integer("dataset.version", version, 1)
    query: dict[str, Any]
    if name is None:
        setting, query = f"dataset.id={id}", {"data_id": check_integer("dataset.id", id, 1)}
    else:
        setting, query = f"dataset.name={name}", {"name": str(name), "version": version}
    cache_folder = (
        check_path("data_dir", data_dir, "name a folder, such as data_dir=data") / "openml"
    )
    try:
        with (
            _socket_timeout(TIMEOUT_SECONDS),
            no_empty_folders(cache_folder),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # of retries, and of versions that OpenML has dropped
            # The declared target is asked for even where the user names another one: the frame has
            # all columns in either case.
            bunch = fetch_openml(
                **query,
                target_column="default-target",
                data_home=str(cache_folder),
                as_frame=True,
                parser="pandas",
                n_retries=1,
                delay=0.1,
            )
    except HTTPError as error:
        raise UserError(
            f"{setting}: openml.org answers {error.code} ({error.reason}); check the name or the id"
        ) from error
    except (URLError, TimeoutError, ConnectionError) as error:
        raise UserError(
            f"{setting}: is not in {cache_folder} and openml.org cannot be reached "
            f"({getattr(error, 'reason', error)}); try again with a network, or fetch it elsewhere "
            "and give the same data_dir, or read a file of yours (dataset=csv, parquet or npz)"
        ) from error
    except Exception as error:  # whatever scikit-learn raises of an answer that is none
        reason = " ".join(str(error).split())
        if not isinstance(error, (ValueError, OSError)):
            reason = f"its answer is malformed: {type(error).__name__} {reason}"
        raise UserError(
            f"{setting}: cannot be had from OpenML ({reason[:200]}); remove {cache_folder} if it "
            "holds a damaged answer, or read a file of yours (dataset=csv, parquet or npz)"
        ) from error
    table, declared_targets = bunch.frame, list(bunch.target_names or [])
    if target is None and len(declared_targets) > 1:
        raise UserError(
            f"{setting}: OpenML declares {len(declared_targets)} targets "
            f"({', '.join(declared_targets)}); choose one with dataset.target and leave out the "
            "others with dataset.drop"
        )
    column = target if target is not None else (declared_targets[0] if declared_targets else None)
    return table_dataset(
        f"openml_{id}" if name is None else str(name),
        table,
        column,
        task,
        TableOptions(drop, encode, fill, missing),
        source=bunch.url,
        merge_labels=merge_labels,
    )


@contextmanager
def _socket_timeout(seconds: float) -> Iterator[None]:
    """Bound how long a host may stay silent in the context: scikit-learn would wait for ever.

    The default of all new sockets is set, since scikit-learn has no such option.
    """
    previous_timeout = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(previous_timeout)
