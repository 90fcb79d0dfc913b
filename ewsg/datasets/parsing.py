"""From the verified content of files to arrays: one function per format; nothing is guessed."""

from typing import NamedTuple

import numpy as np


class Columns(NamedTuple):
    """The contents of a file, in the smallest or the natural number type."""

    features: np.ndarray
    labels: np.ndarray
    groups: np.ndarray | None = None


def parse_idx(images: bytes, labels: bytes) -> Columns:
    """MNIST's idx files: a header of 16 or 8 bytes, then one byte per pixel or label; pixels to [0, 1]."""
    pixels = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 28 * 28)
    return Columns(np.divide(pixels, 255, dtype=np.float32), np.frombuffer(labels, np.uint8, offset=8))


def parse_covertype(content: bytes) -> Columns:
    """Comma-separated small integers, the class last; int16 holds them all."""
    table = _numbers(content.replace(b"\n", b","), ",", np.int16).reshape(-1, 55)
    return Columns(table[:, :54], table[:, 54])


def parse_pima(content: bytes) -> Columns:
    """Comma-separated numbers without a header, the outcome last."""
    table = _numbers(content.replace(b"\n", b","), ",").reshape(-1, 9)
    return Columns(table[:, :8], table[:, 8].astype(np.int32))


def parse_parkinsons(content: bytes) -> Columns:
    """A header, then per recording: name, 16 features, status, 6 features; the groups are the subjects.

    The recording `phon_R01_S01_3` is the third of the subject `phon_R01_S01`.
    """
    rows = np.array([line.split(",") for line in content.decode("ascii").splitlines()[1:]])
    subjects = np.array([name.rpartition("_")[0] for name in rows[:, 0]])
    features = np.delete(rows, [0, 17], axis=1).astype(np.float64)
    return Columns(features, rows[:, 17].astype(np.int32), subjects)


def parse_a9a(content: bytes) -> Columns:
    """LIBSVM's sparse text, `label index:value ...` with indices from 1, made dense; labels become 0, 1."""
    num_pairs = np.array([line.count(b":") for line in content.splitlines()])
    numbers = _numbers(content.replace(b":", b" "), " ")
    starts = np.cumsum(1 + 2 * num_pairs) - (1 + 2 * num_pairs)
    pairs = np.delete(numbers, starts).reshape(-1, 2)
    rows = np.repeat(np.arange(len(num_pairs)), num_pairs)
    features = np.zeros((len(num_pairs), 123), np.float32)
    features[rows, pairs[:, 0].astype(np.int64) - 1] = pairs[:, 1]
    return Columns(features, (numbers[starts] > 0).astype(np.int32))


def parse_regression(content: bytes, num_columns: int, target: int) -> Columns:
    """Whitespace-separated numbers; the features are the columns before the target."""
    table = _numbers(content, " ").reshape(-1, num_columns)
    return Columns(table[:, :target], table[:, target])


def _numbers(text: bytes, separator: str, dtype: type = np.float64) -> np.ndarray:
    """All the numbers of a text, in one pass in C: several times as fast as `numpy.loadtxt`."""
    return np.fromstring(text, dtype=dtype, sep=separator)
