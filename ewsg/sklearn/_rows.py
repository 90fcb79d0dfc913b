"""Rows as the engine takes them: merged, in an order of their own, in standard units, padded to common shapes."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from jaxtyping import Float, Int, Shaped

from .._core import memory
from ..target import arrays

_FEWEST_ROWS, _POWERS_OF_TWO = 64, 256
_BUCKETS_PER_OCTAVE = 8
_FEATURES_TOGETHER = 4
_BLOCK_BYTES = 32 * 2**20
_CONSTANT_RATIO = 1e-12


@dataclasses.dataclass(frozen=True)
class Rows:
    """Distinct rows of positive weight.

    Attributes:
        features: a dense or sparse (CSR) matrix.
        responses: one number per row.
        weights: of the rows' log-likelihoods.
    """

    features: Any
    responses: Shaped[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def mean_response(self) -> float:
        """The weighted mean."""
        return float(np.average(self.responses, weights=self.weights))

    @property
    def response_scale(self) -> float:
        """The weighted standard deviation; 1 if all responses are equal."""
        mean = self.mean_response
        scale = float(np.sqrt(np.average((self.responses - mean) ** 2, weights=self.weights)))
        return scale if scale > _CONSTANT_RATIO * abs(mean) else 1.0


def merged(features: Any, responses: np.ndarray, weights: Float[np.ndarray, " n"]) -> Rows:
    """Rows without those of weight 0, equal ones merged, in an order that depends on nothing but their values.

    A row of weight 2 is then the same as that row given twice, to the last bit, and the order of rows does not matter.
    """
    if not np.all(weights > 0):
        used = np.flatnonzero(weights > 0)
        features, responses, weights = features[used], responses[used], weights[used]
    direction = np.random.default_rng(0).normal(size=features.shape[1])
    is_sparse = scipy.sparse.issparse(features)  # BLAS would give equal rows numbers that differ
    along = features @ direction if is_sparse else np.einsum("ij,j->i", features, direction)
    order = np.lexsort((responses, along))
    features, responses, weights = features[order], responses[order], weights[order]
    differs = (responses[1:] != responses[:-1]) | _differs_from_next(features)
    first = np.flatnonzero(np.concatenate([[True], differs]))
    if len(first) == len(order):
        return Rows(features, responses, weights)
    return Rows(features[first], responses[first], np.add.reduceat(weights, first))


def _differs_from_next(features: Any) -> Shaped[np.ndarray, " n"]:
    if scipy.sparse.issparse(features):
        return np.diff((features[1:] != features[:-1]).tocsr().indptr) > 0
    return np.any(features[1:] != features[:-1], axis=1)


@dataclasses.dataclass(frozen=True)
class Units:
    """The units of the columns: z = (x − mean)/scale.

    Attributes:
        mean: of each column.
        scale: its standard deviation, 1 if the column is constant.
    """

    mean: Float[np.ndarray, " d"]
    scale: Float[np.ndarray, " d"]

    def standard(self, features: Float[np.ndarray, "b d"]) -> Float[np.ndarray, "b d"]:
        """z of some rows."""
        return (features - self.mean) / self.scale


def units_of(rows: Rows) -> Units:
    """Weighted means and standard deviations of the columns, in two passes over blocks of rows."""
    total = rows.weights.sum()
    mean, square = np.zeros((2, rows.features.shape[1]))
    for start, block in dense_blocks(rows.features):
        mean += rows.weights[start : start + len(block)] @ block / total
    for start, block in dense_blocks(rows.features):
        square += rows.weights[start : start + len(block)] @ (block - mean) ** 2 / total
    scale = np.sqrt(square)
    return Units(mean, np.where(scale > _CONSTANT_RATIO * np.abs(mean), scale, 1.0))


def dense_blocks(features: Any, numbers_per_row: int = 0) -> Iterator[tuple[int, Float[np.ndarray, "b d"]]]:
    """(first row, rows) in dense blocks of at most 32 MiB: a sparse matrix is never dense as a whole.

    Args:
        features: dense or sparse.
        numbers_per_row: that have to fit, if more than the row itself.
    """
    count = max(1, _BLOCK_BYTES // (8 * max(features.shape[1], numbers_per_row)))
    for start in range(0, features.shape[0], count):
        block = features[start : start + count]
        yield start, np.asarray(block.toarray() if scipy.sparse.issparse(block) else block, np.float64)


@dataclasses.dataclass(frozen=True)
class Padded:
    """Rows and columns added, so that data of nearly the same size share their compiled programs.

    A row that stands c times has 1/c of its weight at each place: the sum over rows is the same, and no row is idle in
    a minibatch. An added column is 0: nothing but its prior informs its coefficient, and it informs no other.

    Attributes:
        places: the row at each place.
        weights: of the places.
        matrix: float32 (float64 if JAX computes so), in standard units; a column of ones first, if there is one.
    """

    places: Int[np.ndarray, " m"]
    weights: Float[np.ndarray, " m"]
    matrix: Float[np.ndarray, "m k"]

    def column(self, values: np.ndarray) -> Float[np.ndarray, " m"]:
        """One number per row, as the engine holds numbers."""
        return values[self.places].astype(self.matrix.dtype)


def padded(rows: Rows, units: Units, *, ones: bool, divisor: float = 1.0) -> Padded:
    """The matrix that the engine holds; raises InputError if it does not fit into memory.

    Args:
        rows: the data.
        units: of the columns.
        ones: whether the first column is one of ones.
        divisor: of the numbers in standard units.
    """
    n, d = rows.features.shape
    height, first = padded_rows(n), int(ones)
    width = -(-(d + first) // _FEATURES_TOGETHER) * _FEATURES_TOGETHER
    dtype = arrays.jax_dtype(np.float64)
    needed = height * width * dtype.itemsize
    memory.check(needed, f"a dense matrix of {n:,} rows and {d:,} features", "use fewer rows or features")
    matrix = arrays.empty((height, width), dtype)
    matrix[:, :first] = 1
    matrix[:, first + d :] = 0
    for start, block in dense_blocks(rows.features):
        matrix[start : start + len(block), first : first + d] = units.standard(block) / divisor
    places = np.arange(height) % n
    matrix[n:] = matrix[places[n:]]
    weights = (rows.weights / np.bincount(places, minlength=n))[places]
    return Padded(places, weights.astype(dtype), matrix)


def padded_rows(count: int) -> int:
    """The next of 64, 128, 256, 288, 320, ..., 512, 576, ...: eight per octave, at most an eighth more."""
    size = _FEWEST_ROWS
    while size < min(count, _POWERS_OF_TWO):
        size *= 2
    if count <= _POWERS_OF_TWO:
        return size
    step = 2 ** int(np.log2(count - 1)) // _BUCKETS_PER_OCTAVE
    return -(-count // step) * step
