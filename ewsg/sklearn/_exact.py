"""Independent draws of a linear regression with unknown noise, where there is no plan for chains."""

from typing import Any

import numpy as np

from ._noise import log_noise_prior

_GRID = np.linspace(np.log(1e-6), np.log(1e3), 8001)
_NUM_DRAWS = 4_000


def exact_draws(data: tuple[Any, Any], prior_scale: float, rng: np.random.Generator) -> dict[str, np.ndarray]:
    r"""4,000 draws of (β, s): s = log σ from its marginal density on a grid, then β given s, which is normal.

    With XᵀWX = U diag(a) Uᵀ, c = UᵀXᵀWy and λ_j = prior_scale⁻² + a_j e^{−2s}:
    log p(s | y) = log π(s) − s Σw − ½ e^{−2s} yᵀWy − ½ Σ_j log λ_j + ½ Σ_j (c_j e^{−2s})²/λ_j, and Uᵀβ | s has
    independent components N(c_j e^{−2s}/λ_j, 1/λ_j).

    Args:
        data: weights, and {"features": X, "responses": y}, in standard units.
        prior_scale: standard deviation of every β_j.
        rng: of the draws.
    """
    weights, own = data
    weights, matrix, responses = (np.asarray(part, np.float64) for part in (weights, own["features"], own["responses"]))
    weighted = weights[:, None] * matrix
    eigenvalues, vectors = np.linalg.eigh(matrix.T @ weighted)
    eigenvalues = np.maximum(eigenvalues, 0)
    along = vectors.T @ (weighted.T @ responses)
    precision = np.exp(-2 * _GRID)[:, None]
    curvature = prior_scale**-2 + eigenvalues * precision
    fit = np.sum((along * precision) ** 2 / curvature - np.log(curvature), axis=1) / 2
    rest = precision[:, 0] * (responses @ (weights * responses)) / 2 + _GRID * weights.sum()
    log_density = fit - rest + log_noise_prior(_GRID, np.exp)
    mass = np.exp(log_density - log_density.max())
    below = np.cumsum((mass[1:] + mass[:-1]) / 2)
    log_scale = np.interp(rng.uniform(size=_NUM_DRAWS) * below[-1], np.concatenate([[0.0], below]), _GRID)
    precision = np.exp(-2 * log_scale)[:, None]
    curvature = prior_scale**-2 + eigenvalues * precision
    components = along * precision / curvature + rng.normal(size=curvature.shape) / np.sqrt(curvature)
    return {"coefficients": components @ vectors.T, "log_scale": log_scale}
