"""Coordinates from a curvature, or from draws that are few and too hot."""

from typing import Any

import numpy as np
from jaxtyping import Float


def root_of_inverse(precision: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d d"]:
    """L with L Lᵀ = H⁻¹, small eigenvalues of H (scaled to a unit diagonal) bounded from below.

    L = S (S H S)^(−½), S = diag(H)^(−½): of all roots the one whose coordinates are most like the parameters, so that a
    rare column has a coordinate of its own.
    """
    scale = 1 / np.sqrt(np.maximum(np.diag(precision), 1e-300))
    values, vectors = np.linalg.eigh(precision * np.outer(scale, scale))
    return scale[:, None] * (vectors / np.sqrt(np.maximum(np.abs(values), 1e-6 * values[-1]))) @ vectors.T


def shrunk_moments(
    z: Float[np.ndarray, "c t d"], temperature: Float[np.ndarray, " d"]
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]]:
    """Mean and covariance of a posterior that is roughly N(0, I), from draws that may be too hot.

    S, the covariance of the draws with every coordinate divided by √T_k, is shrunk to w S + (1 − w) I, where 1 − w is
    the share of ‖S − I‖² that the spread between chains explains: the w of least expected square error. The same is
    then done for every variance by itself: one coordinate that is far off is seen, and does not need all d² entries.

    Args:
        z: draws of independent chains.
        temperature: T, the virials of the coordinates; those below 1 count as 1.
    """
    mean = z.mean((0, 1))
    scaled = (z - mean) / np.sqrt(np.maximum(temperature, 1))
    each = np.einsum("ctj,ctk->cjk", scaled, scaled) / z.shape[1]
    variances, identity = np.einsum("cjj->cj", each), np.eye(len(mean))
    weight = _weight(each, identity, together=True)
    cov = weight * each.mean(0) + (1 - weight) * identity
    wanted = 1 + _weight(variances, 1.0) * (variances.mean(0) - 1)
    scale = np.sqrt(wanted / np.diag(cov))
    return mean, cov * np.outer(scale, scale)


def _weight(each: Float[np.ndarray, "c ..."], towards: Any, together: bool = False) -> Any:
    """w, of each entry or of all together, for the mean over chains."""
    found = each.mean(0)
    by_chance = (each - found) ** 2 / (len(each) * (len(each) - 1))
    chance, apart = by_chance.sum(0), (found - towards) ** 2
    if together:
        chance, apart = chance.sum(), apart.sum()
    return np.clip(1 - chance / np.maximum(apart, 1e-300), 0, 1)
