"""A regression whose intercepts are exchangeable: parameters on several scales, in a dict."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..target.target import Target
from .base import Problem

_GROUPS = 8


def log_likelihood(params: dict[str, Array], datum: dict[str, Any]) -> Float[Array, ""]:
    """log N(y; μ + τ z_g + β x, σ²): the intercept of group g is μ + τ z_g."""
    intercept = params["mu"] + jnp.exp(params["log_tau"]) * params["z"][datum["group"]]
    residual = datum["y"] - intercept - params["slope"] * datum["x"]
    return -0.5 * jnp.square(residual * jnp.exp(-params["log_sigma"])) - params["log_sigma"]


def log_prior(params: dict[str, Array]) -> Float[Array, ""]:
    """μ, β, z ~ N(0, 1); log τ, log σ ~ N(−½, ½²)."""
    unit = jnp.square(params["mu"]) + jnp.square(params["slope"]) + jnp.sum(jnp.square(params["z"]))
    scales = sum(jnp.square((params[name] + 0.5) / 0.5) for name in ("log_tau", "log_sigma"))
    return -0.5 * (unit + scales)


def hierarchical() -> Problem:
    """Eight groups of unequal size, 200 data, not centred."""
    rng = np.random.default_rng(3)
    group = rng.choice(_GROUPS, 200, p=np.arange(1, _GROUPS + 1) / 36)
    x = rng.normal(size=200)
    y = 0.5 + 0.6 * rng.normal(size=_GROUPS)[group] + 0.8 * x + 0.7 * rng.standard_t(5, size=200)
    data = {"group": group.astype(np.int32), "x": x.astype(np.float32), "y": y.astype(np.float32)}
    init = {name: jnp.zeros(()) for name in ("mu", "log_tau", "slope", "log_sigma")} | {"z": jnp.zeros(_GROUPS)}
    return Problem(
        title="hierarchical regression, n = 200, d = 12",
        target=Target(log_likelihood, log_prior, data),
        init=init,
        step_size=0.006,
        friction=8.0,
        data_per_step=20,
        num_draws=4000,
    )
