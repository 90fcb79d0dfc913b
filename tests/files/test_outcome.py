"""Which model an outcome suggests, how it is coded, and which it refuses."""

import numpy as np
import pytest

from ewsg import files
from ewsg.errors import InputError

ROWS = 12


def read(write, values, model="auto"):
    lines = "".join(f"{i * i},{value}\n" for i, value in enumerate(values))
    return files.read(write("a.csv", f"x,y\n{lines}"), "y", model=model)


@pytest.mark.parametrize(
    ("values", "model", "classes"),
    [
        (["yes", "no", "no"] * 4, "logistic", ("no", "yes")),
        (["true", "false", "true"] * 4, "logistic", ("false", "true")),
        ([0, 1, 1] * 4, "logistic", ("0", "1")),
        ([10, 9, 10] * 4, "logistic", ("9", "10")),
        ([0.5, -1, 0.5] * 4, "logistic", ("-1", "0.5")),
        (["b", "c", "a", "c"] * 3, "softmax", ("a", "b", "c")),
        (list(range(-3, 9)), "linear", ()),
        ([0.5, 1, 2] * 4, "linear", ()),
    ],
)
def test_the_model_that_values_suggest(write, values, model, classes):
    table = read(write, values)
    outcome = table.encoding.outcome
    assert (outcome.model, outcome.classes) == (model, classes)
    coded = table.encoding.data(table.source, table.rows)[1]
    if classes:
        np.testing.assert_array_equal(coded, [classes.index(str(value)) for value in values])
    else:
        np.testing.assert_allclose(coded, (np.array(values) - np.mean(values)) / np.std(values, ddof=1), atol=1e-5)
    table.target()


def test_classes_may_be_numbers_and_counts_stay_as_they_are(write):
    values = [2, 0, 1, 2] * 3
    softmax = read(write, values, "softmax")
    assert softmax.encoding.outcome.classes == ("0", "1", "2")
    assert softmax.encoding.outcome.reference == "2"
    for model in ("poisson", "negative-binomial"):
        table = read(write, values, model)
        np.testing.assert_array_equal(table.encoding.data(table.source, table.rows)[1], values)
        np.testing.assert_array_equal(table.target().data.arrays["counts"], values)


@pytest.mark.parametrize(
    ("values", "model", "sentence"),
    [
        ([0, 1, 2, 3] * 3, "auto", "has 4 different whole numbers, 0 to 3, which may be counts, classes or amounts"),
        (["a"] * 12, "auto", "the outcome y is always a"),
        ([3] * 12, "linear", "the outcome y is always 3"),
        (["a", "b", "c"] * 4, "logistic", "has 3 different values, and logistic regression takes 2 at most"),
        (["a", "b", "c"] * 4, "poisson", r"is text \(a, b, c\), and poisson regression needs numbers"),
        (["true", "false"] * 6, "linear", r"is true or false \(false, true\), and linear"),
        ([1, -2, 3] * 4, "poisson", r"has numbers below 0 \(such as -2\), and poisson regression needs counts"),
        ([1, 2.5, 3] * 4, "negative-binomial", "has numbers that are not whole"),
        (["?"] * 12, "auto", "the outcome y of .* is missing in every row"),
        ([1, 2, "inf"] * 4, "auto", r"4 infinite values in y \(first in row 3\)"),
        ([f"c{i}" for i in range(60)], "auto", "60 different values: softmax regression takes at most 50"),
        ([1e-200, 2e-200, 3.5e-200] * 4, "linear", "the outcome y has an sd of .*: rescale it"),
        ([0, 1] * 6, "logit", "unknown model 'logit'; did you mean 'logistic'"),
    ],
)
def test_values_that_do_not_suit(write, values, model, sentence):
    with pytest.raises(InputError, match=sentence):
        read(write, values, model)
