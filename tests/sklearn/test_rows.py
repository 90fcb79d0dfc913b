import numpy as np
import pytest
import scipy.sparse

from ewsg._core import memory
from ewsg.errors import InputError
from ewsg.sklearn import _rows

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(40, 3)), 1)
Y = RNG.integers(0, 2, 40)
WEIGHTS = RNG.integers(0, 4, 40).astype(float)


def same(one: _rows.Rows, other: _rows.Rows) -> bool:
    matrices = [
        rows.features.toarray() if scipy.sparse.issparse(rows.features) else rows.features for rows in (one, other)
    ]
    pairs = [matrices, (one.responses, other.responses), (one.weights, other.weights)]
    return all(np.array_equal(*pair) for pair in pairs)


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_a_weight_is_a_number_of_copies_in_any_order(container):
    repeated = np.repeat(np.arange(40), WEIGHTS.astype(int))
    order = RNG.permutation(len(repeated))
    weighted = _rows.merged(container(X), Y, WEIGHTS)
    copies = _rows.merged(container(X[repeated][order]), Y[repeated][order], np.ones(len(repeated)))
    assert same(weighted, copies)
    assert weighted.weights.sum() == WEIGHTS.sum()


def test_equal_rows_are_merged_and_different_ones_are_not():
    features = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [1.0, 2.0]])
    found = _rows.merged(features, np.array([0, 0, 1, 0]), np.array([1.0, 2.0, 4.0, 8.0]))
    listed = {(*row, y): w for row, y, w in zip(found.features.tolist(), found.responses, found.weights, strict=True)}
    assert listed == {(1.0, 2.0, 0): 9.0, (2.0, 1.0, 0): 2.0, (1.0, 2.0, 1): 4.0}


@pytest.mark.parametrize("count", [1, 5, 63, 64, 65, 100, 129, 256, 257, 1000, 100_001])
def test_padding_is_at_most_an_eighth_of_many_rows(count):
    size = _rows.padded_rows(count)
    assert size >= count
    assert size <= max(64, 2 * count - 1)
    assert count <= 256 or size < 1.125 * count + 1
    assert len({_rows.padded_rows(n) for n in range(1, 4097)}) == 3 + 8 * 4


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array])
def test_padded_rows_are_copies_that_share_their_weight(container, monkeypatch):
    monkeypatch.setattr(_rows, "_BLOCK_BYTES", 7 * 8 * 3)  # blocks of seven rows
    rows = _rows.Rows(container(X), Y, 1 + WEIGHTS)
    units = _rows.units_of(rows)
    np.testing.assert_allclose(units.mean, np.average(X, axis=0, weights=1 + WEIGHTS))
    np.testing.assert_allclose(units.scale**2, np.cov(X.T, aweights=1 + WEIGHTS, ddof=0).diagonal())
    data = _rows.padded(rows, units, ones=True, divisor=2.0)
    assert data.matrix.shape == (64, 4)
    total = np.zeros(40)
    np.add.at(total, data.places, data.weights)
    np.testing.assert_allclose(total, 1 + WEIGHTS, rtol=1e-6)
    standard = np.c_[np.ones(40), (X - units.mean) / units.scale / 2]
    np.testing.assert_allclose(data.matrix, standard[data.places], rtol=1e-6, atol=1e-6)


def test_added_columns_are_zero_and_constant_ones_are_centred():
    rows = _rows.Rows(np.c_[X, np.full(40, 1e6 / 3)], Y, np.ones(40))
    units = _rows.units_of(rows)
    assert units.scale[3] == 1
    matrix = _rows.padded(rows, units, ones=True).matrix
    assert matrix.shape == (64, 8)
    np.testing.assert_allclose(matrix[:, 4], 0, atol=1e-6)
    assert not matrix[:, 5:].any()


def test_a_sparse_matrix_that_would_not_fit_is_one_sentence(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 2**20)
    features = scipy.sparse.csr_array((np.ones(2), ([0, 9], [3, 1])), shape=(3_000, 2_000))
    rows = _rows.Rows(features, np.zeros(3_000), np.ones(3_000))
    with pytest.raises(InputError, match="a dense matrix of 3,000 rows and 2,000 features needs"):
        _rows.padded(rows, _rows.units_of(rows), ones=True)
