"""Regressions whose batched derivatives are closed forms: each constructor returns a ready `ewsg.Target`.

| constructor | log density of one datum (x, y) | parameters |
|---|---|---|
| `logistic` | −softplus(−(2y − 1) x·θ), y in {0, 1} | array (d,) |
| `linear`, known `noise_scale` | log N(y; x·θ, σ²) | array (d,) |
| `linear`, unknown noise | log N(y; x·β, e^{2s}) | {"coefficients": (d,), "log_scale": ()} |
| `poisson` | y x·θ − e^{x·θ} − log y! | array (d,) |
| `negative_binomial` | log NB(y; mean μ = e^{x·β}, var μ + e^s μ²) | {"coefficients": (d,), "log_dispersion": ()} |
| `softmax` | (xᵀΘ)_y − logsumexp(xᵀΘ), y in 0..K−1 | array (d, K) |

The prior of the coefficients is N(0, prior_scale² I), by default with scale 2.5 (weakly informative when the
columns are standardised; the default of rstanarm). `prior_precision` = 1/prior_scale² may be given instead;
0 is the flat prior. An intercept is a column of ones (`with_intercept`) and has the same prior as the rest.

Example:
    >>> import jax.numpy as jnp, numpy as np, ewsg
    >>> features = np.random.default_rng(0).normal(size=(100, 2))
    >>> labels = features[:, 0] > 0
    >>> target = ewsg.models.logistic(ewsg.models.with_intercept(features), labels)
    >>> target.full_force(jnp.zeros(3)).shape
    (3,)
"""

from ._inputs import with_intercept
from .linear import Linear, LinearUnknownScale, linear
from .logistic import Logistic, logistic
from .negative_binomial import NegativeBinomial, negative_binomial
from .poisson import Poisson, poisson
from .priors import GaussianPrior, flat
from .softmax import Softmax, softmax

__all__ = [
    "GaussianPrior",
    "Linear",
    "LinearUnknownScale",
    "Logistic",
    "NegativeBinomial",
    "Poisson",
    "Softmax",
    "flat",
    "linear",
    "logistic",
    "negative_binomial",
    "poisson",
    "softmax",
    "with_intercept",
]
