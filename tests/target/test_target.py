"""What a target checks of its densities."""

import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg.errors import InputError


@pytest.mark.parametrize(
    ("log_likelihood", "log_prior", "summed"),
    [(lambda t, x: t - x[0], None, "the datum"), (lambda t, x: -jnp.sum(t**2), lambda t: t, "the parameters")],
    ids=["likelihood", "prior"],
)
def test_an_axis_of_chains_is_named_as_a_cause(log_likelihood, log_prior, summed):
    target = ewsg.Target(log_likelihood, log_prior, np.ones((3, 2)))
    with pytest.raises(InputError, match=rf"not shape \(2, 2\): sum over .* of {summed}, or, .*init=lambda key"):
        target.check(jnp.zeros((2, 2)))
