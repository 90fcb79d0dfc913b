"""`load(name)`: find, verify and parse a data set."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..errors import InputError, unknown
from .download import obtain
from .parsing import Columns
from .registry import DATASETS, Entry, File
from .storage import check_data_folder, find, keep_arrays, parsed_path, read_arrays, unpack


class Table(NamedTuple):
    """A data set in memory, values as published.

    Attributes:
        features: float32, of shape (n, d).
        labels: Of shape (n,): int32 classes, or float32 targets of a regression.
        feature_names: d names.
        source: Citation and licence.
        split: "train" or "test" where the publisher splits the rows, else None.
        groups: Of shape (n,), for Parkinsons only: the subject of each recording. Recordings of one subject
            resemble each other, so a subject must not be on both sides of a train/test split.
    """

    features: np.ndarray
    labels: np.ndarray
    feature_names: tuple[str, ...]
    source: str
    split: str | None = None
    groups: np.ndarray | None = None

    def __repr__(self) -> str:
        n, d = self.features.shape
        return f"Table(n={n}, d={d}, labels={self.labels.dtype}, split={self.split!r}, source={self.source!r})"


def names() -> tuple[str, ...]:
    """The data sets that `load` knows."""
    return tuple(DATASETS)


def locations() -> dict[str, Path | None]:
    """Where each data set is on this machine: its first file, or None if one of its files is missing.

    Nothing is read, verified or downloaded.
    """
    return {name: _location(entry) for name, entry in DATASETS.items()}


def load(name: str, split: str | None = None, *, download: bool = True) -> Table:
    """Load a data set from `$EWSG_DATA`, else from the user's cache, else from its publisher.

    Values are as published, with two exceptions: the pixels of `mnist` are divided by 255, and the labels of
    `a9a`, −1 and +1, become 0 and 1. Nothing is standardised or shuffled: see `standardize` and
    `train_test_split`.

    Args:
        name: One of `names()`.
        split: "train" or "test" for `mnist` and `a9a`, whose publishers hold out a test set. None means all
            rows that may be trained on: there the training rows, and every row of the other sets.
        download: Whether a missing file may be fetched from its publisher.

    Raises:
        UnknownOption: There is no such data set.
        DataNotFound: A file is missing; the message says which file to put where.
        InputError: A file is damaged or not the published one, or there is no such split.

    Example:
        >>> import ewsg
        >>> table = ewsg.datasets.load("covertype")
        >>> features, mean, sd = ewsg.datasets.standardize(table.features, columns=range(10))
    """
    if name not in DATASETS:
        raise unknown("data set", name, names())
    entry = DATASETS[name]
    split = _published_split(name, entry, split)
    check_data_folder()
    columns = _read_columns(name, entry, entry.splits[split], download)
    label_type = np.float32 if np.issubdtype(columns.labels.dtype, np.floating) else np.int32
    return Table(
        features=np.ascontiguousarray(columns.features, dtype=np.float32),
        labels=columns.labels.astype(label_type),
        feature_names=entry.feature_names,
        source=entry.source,
        split=split,
        groups=columns.groups,
    )


def _published_split(name: str, entry: Entry, split: str | None) -> str | None:
    if None in entry.splits:
        if split is not None:
            raise InputError(
                f"the data set {name!r} has no published split, so split must be None, not {split!r}: "
                "split its rows with ewsg.datasets.train_test_split"
            )
        return None
    if split is None:
        return "train"
    if split not in entry.splits:
        raise unknown("split", split, ("train", "test"))
    return split


def _read_columns(name: str, entry: Entry, files: tuple[File, ...], download: bool) -> Columns:
    obtained = [obtain(name, file, download) for file in files]
    kept_at = parsed_path(name, b"".join(stored for stored, _ in obtained)) if entry.is_slow else None
    arrays = read_arrays(kept_at, ("features", "labels")) if kept_at else None
    if arrays is not None:
        return Columns(**arrays)
    contents = [unpack(file, stored, origin) for file, (stored, origin) in zip(files, obtained, strict=True)]
    columns = entry.parse(*contents)
    if kept_at:
        keep_arrays(kept_at, {"features": columns.features, "labels": columns.labels})
    return columns


def _location(entry: Entry) -> Path | None:
    paths = [find(file) for files in entry.splits.values() for file in files]
    return None if None in paths else paths[0]
