"""The prior of a noise scale."""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core.types import Position
from ..models.priors import GaussianPrior

_SMALLEST_NOISE = 1e-3


class NoisePrior(eqx.Module):
    r"""log π(β, s) = log π(β) + s − e^s − ½ ε² e^{−2s}: σ = e^s ~ Exponential(1), cut off below ε = 10⁻³.

    In units of the standard deviation of the responses. Without the cut-off, data that a line fits without error would
    have no posterior.
    """

    prior: GaussianPrior
    log_concave: ClassVar[bool] = True

    def __call__(self, params: Position) -> Float[Array, ""]:
        rest = {name: leaf for name, leaf in params.items() if name != "log_scale"}
        return self.prior(rest) + log_noise_prior(params["log_scale"])


def log_noise_prior(log_scale: Any, exp: Callable = jnp.exp) -> Any:
    """log π(s) up to a constant, of a number or an array; `exp` is that of JAX or of NumPy."""
    return log_scale - exp(log_scale) - 0.5 * (_SMALLEST_NOISE * exp(-log_scale)) ** 2
