"""The usual loss of a classifier, and the usual prior of a network."""

import functools
import operator

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .._core.types import Position


def cross_entropy(logits: Float[Array, " k"], label: Int[Array, ""]) -> Float[Array, ""]:
    """−log softmax(logits)[label]: minus the log-likelihood of one datum; NaN if the label is not a class."""
    chosen = jnp.arange(logits.shape[-1]) == label
    value = jax.nn.logsumexp(logits) - jnp.sum(jnp.where(chosen, logits, 0))
    return jnp.where(jnp.any(chosen), value, jnp.nan)


def standard_normal(params: Position) -> Float[Array, ""]:
    """log N(θ; 0, I), up to a constant: the prior of a network unless another is given."""
    squares = [jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(params)]
    return -0.5 * functools.reduce(operator.add, squares)
