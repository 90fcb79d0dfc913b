"""Standardised columns, and splits into training and test rows."""

import numpy as np
import pytest

from ewsg import datasets
from ewsg.errors import InputError


def test_standardized_columns_have_mean_0_and_sd_1():
    features = np.random.default_rng(0).normal(1e3, [[1.0, 20.0, 0.1]], (500, 3)).astype(np.float32)
    standardized, mean, sd = datasets.standardize(features)
    assert standardized.dtype == mean.dtype == sd.dtype == np.float32
    np.testing.assert_allclose(standardized.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(standardized.std(axis=0), 1, atol=1e-5)
    np.testing.assert_allclose(mean, features.mean(axis=0, dtype=np.float64), rtol=1e-6)
    np.testing.assert_allclose(sd, features.std(axis=0, dtype=np.float64), rtol=1e-5)


def test_a_constant_column_becomes_zero():
    features = np.column_stack([np.full(7, 0.998), np.arange(7)]).astype(np.float32)
    standardized, mean, sd = datasets.standardize(features)
    assert (standardized[:, 0] == 0).all()
    assert (mean[0], sd[0]) == (np.float32(0.998), 1)


@pytest.mark.parametrize("columns", [[0, 2], range(0, 3, 2), slice(0, 3, 2), np.array([True, False, True])])
def test_only_the_chosen_columns_are_standardized(columns):
    features = np.array([[1.0, 5.0, 1.0], [3.0, 7.0, 2.0]])
    before = features.copy()
    standardized, mean, sd = datasets.standardize(features, columns)
    np.testing.assert_allclose(standardized, [[-1, 5, -1], [1, 7, 1]])
    np.testing.assert_allclose((features - mean) / sd, standardized)
    np.testing.assert_array_equal(features, before)


def test_integers_are_standardized_to_floats():
    assert datasets.standardize(np.array([[1], [2]]))[0].dtype == np.float32


@pytest.mark.parametrize("features", [np.zeros(3), np.zeros((0, 2))])
def test_what_is_not_a_table_cannot_be_standardized(features):
    with pytest.raises(InputError, match=r"shape \(n, d\)"):
        datasets.standardize(features)


def test_a_split_is_a_partition_that_the_seed_decides():
    train, test = datasets.train_test_split(101, 0.8, seed=3)
    assert (len(train), len(test)) == (81, 20)
    assert sorted([*train, *test]) == list(range(101))
    again, _ = datasets.train_test_split(101, 0.8, seed=3)
    other, _ = datasets.train_test_split(101, 0.8, seed=4)
    np.testing.assert_array_equal(train, again)
    assert not np.array_equal(train, other)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5, 1.5, 0.01])
def test_a_split_needs_rows_on_both_sides(fraction):
    with pytest.raises(InputError, match="leaves no row"):
        datasets.train_test_split(10, fraction, seed=0)
