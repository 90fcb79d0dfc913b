"""Features and responses: what is taken, and what is refused in one sentence."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ewsg import models
from ewsg.errors import InputError


@pytest.mark.float32
def test_whole_number_features_become_real():
    target = models.logistic(np.array([[1, 2], [3, 4]]), [True, False])
    np.testing.assert_array_equal(target.data.arrays, np.array([[1, 2], [-3, -4]], np.float32))
    assert target.data.arrays.dtype == jnp.float32


def test_float32_features_stay_so_in_x64():
    with jax.enable_x64(True):
        target = models.linear(np.ones((2, 1), np.float32), [1.0, 2.0])
        assert {leaf.dtype for leaf in jax.tree.leaves(target.data.arrays)} == {np.dtype("float32")}


def test_with_intercept_prepends_ones():
    np.testing.assert_array_equal(models.with_intercept([[2.0], [3.0]]), [[1.0, 2.0], [1.0, 3.0]])


def test_softmax_counts_the_classes():
    assert models.softmax([[1.0], [2.0]], [0, 4]).likelihood.num_classes == 5
    assert models.softmax([[1.0], [2.0]], [0, 1], num_classes=3).likelihood.num_classes == 3
    assert models.softmax([[1.0], [2.0]], [False, True]).likelihood.num_classes == 2


ROWS = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.float32
@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: models.logistic(ROWS, [0, 2]), "logistic: labels must be 0 or 1, not 2 (row 1)"),
        (lambda: models.logistic(ROWS, [-1.0, 1.0]), "logistic: labels must be 0 or 1, not -1.0 (row 0)"),
        (lambda: models.logistic(ROWS, [0, np.nan]), "logistic: labels must be 0 or 1, not nan (row 1)"),
        (lambda: models.negative_binomial(ROWS, [1, 0.5]), "negative_binomial: counts must be whole numbers"),
        (lambda: models.poisson(ROWS, [1, -1]), "counts must be whole numbers of at least 0, not -1 (row 1)"),
        (
            lambda: models.poisson(ROWS, [0.5, 1]),
            "counts must be whole numbers of at least 0, not 0.5 (row 0)",
        ),
        (lambda: models.poisson(ROWS, [np.inf, 1]), "counts must be whole numbers of at least 0, not inf"),
        (
            lambda: models.softmax(ROWS, [0, -1]),
            "softmax: labels must be whole numbers of at least 0, not -1",
        ),
        (
            lambda: models.softmax(ROWS, [0, 1.5]),
            "softmax: labels must be whole numbers of at least 0, not 1.5",
        ),
        (
            lambda: models.softmax(ROWS, [0, 3], num_classes=3),
            "labels must be below num_classes = 3, not 3 (row 1)",
        ),
        (lambda: models.softmax(ROWS, [0, 0]), "num_classes must be a whole number of at least 2, not 1"),
        (lambda: models.softmax(ROWS, [0, 1], num_classes=2.0), "num_classes must be a whole number"),
        (lambda: models.linear([1.0, 2.0], [1.0, 2.0]), "linear: features must be a matrix"),
        (lambda: models.linear(np.zeros((0, 2)), []), "features must be a matrix"),
        (lambda: models.linear(np.zeros((2, 0)), [1.0, 2.0]), "features must be a matrix"),
        (lambda: models.with_intercept([1.0]), "with_intercept: features must be a matrix"),
        (
            lambda: models.linear([[1.0], [2.0, 3.0]], [1.0, 2.0]),
            "linear: features must be an array of numbers",
        ),
        (lambda: models.linear([["a"], ["b"]], [1.0, 2.0]), "features must be numbers, not <U1: encode categories"),
        (lambda: models.linear(ROWS, [1.0]), "linear: features have 2 rows but there are 1 responses"),
        (lambda: models.poisson(ROWS, [1, 2, 3]), "poisson: features have 2 rows but there are 3 counts"),
        (
            lambda: models.logistic(ROWS, [[0], [1]]),
            "labels must have one axis, one entry per datum, not shape (2, 1)",
        ),
        (
            lambda: models.linear([[np.nan], [2.0]], [1.0, 2.0]),
            "1 NaN or infinite entries in linear: features (first in row 0)",
        ),
        (
            lambda: models.linear([[2.0], [1e300]], [1.0, 2.0]),
            "numbers in linear: features (first in row 1) do not fit float32",
        ),
        (lambda: models.linear(ROWS, [1.0, 1e300]), "numbers in linear: responses (first in row 1) do not fit float32"),
        (lambda: models.linear(ROWS, [1.0, 2.0], noise_scale=0), "linear: noise_scale must be positive"),
        (lambda: models.Linear(-1.0), "Linear: noise_scale must be positive"),
        (lambda: models.logistic(ROWS, [0, 1], prior_scale=0.0), "logistic: prior_scale must be positive"),
        (lambda: models.softmax(ROWS, [0, 1], prior_scale=-1.0), "softmax: prior_scale must be positive"),
        (lambda: models.poisson(ROWS, [0, 1], prior_scale="a"), "poisson: prior_scale must be a number"),
        (
            lambda: models.poisson(ROWS, [0, 1], prior_scale=1e-200),
            "precision must be zero or positive and finite",
        ),
        (lambda: models.linear(ROWS, [0, 1], prior_precision=-1), "prior_precision must be zero or positive"),
        (lambda: models.linear(ROWS, [0, 1], prior_scale=np.ones(2)), "prior_scale must be one number"),
        (
            lambda: models.linear(ROWS, [0, 1], prior_scale=1, prior_precision=1),
            "prior_scale or prior_precision, not",
        ),
        (lambda: models.GaussianPrior(-1.0), "GaussianPrior: precision must be zero or positive"),
        (lambda: models.Softmax(1), "Softmax: num_classes must be a whole number of at least 2"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(build, sentence):
    with pytest.raises(InputError) as caught:
        build()
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_parameters_of_another_shape_are_refused():
    target = models.softmax(ROWS, [0, 2])
    with pytest.raises(InputError, match=r"parameters need shape \(d, 3\), not \(2, 2\)"):
        target.check(jnp.zeros((2, 2)))
    with pytest.raises(InputError, match="must return one real scalar"):
        models.logistic(ROWS, [0, 1]).check(jnp.zeros((2, 1)))
