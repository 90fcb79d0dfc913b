"""Coordinates from a curvature, or from draws that are few and too hot."""

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
    the share of ‖S − I‖² that the spread between chains explains: the w of least expected square error.

    Args:
        z: draws of independent chains.
        temperature: T, the virials of the coordinates; those below 1 count as 1.
    """
    mean = z.mean((0, 1))
    scaled = (z - mean) / np.sqrt(np.maximum(temperature, 1))
    chains, draws, dimension = z.shape
    each = np.einsum("ctj,ctk->cjk", scaled, scaled) / draws
    cov, identity = each.mean(0), np.eye(dimension)
    by_chance = np.sum((each - cov) ** 2) / (chains * (chains - 1))
    weight = max(0.0, 1 - by_chance / max(np.sum((cov - identity) ** 2), 1e-300))
    return mean, weight * cov + (1 - weight) * identity
