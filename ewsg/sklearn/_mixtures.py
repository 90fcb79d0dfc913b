"""Quantiles of mixtures: predictive intervals average over the posterior, without another random number."""

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri, pdtr, pdtrik

_MOST_STEPS = 60
_TOLERANCE = 1e-9
_ROOT_2PI = float(np.sqrt(2 * np.pi))


def central(level: float) -> tuple[float, float]:
    """The probabilities below the two ends of a central interval."""
    return (1 - level) / 2, (1 + level) / 2


def normal_quantile(
    mean: Float[np.ndarray, "b s"], scale: Float[np.ndarray, " s"], probability: float
) -> Float[np.ndarray, " b"]:
    """q with (1/S) Σ_s Φ((q − mean_s)/scale_s) = probability: Newton's method, by halves where it would leave."""
    ends = mean + ndtri(probability) * scale
    low, high = ends.min(1), ends.max(1)  # a mixture's quantile lies between those of its parts
    spread = np.sqrt(np.mean(scale**2) + mean.var(1))
    guess = np.clip(mean.mean(1) + ndtri(probability) * spread, low, high)
    for _ in range(_MOST_STEPS):
        z = (guess[:, None] - mean) / scale
        excess = ndtr(z).mean(1) - probability
        low, high = np.where(excess < 0, guess, low), np.where(excess > 0, guess, high)
        slope = np.mean(np.exp(-(z**2) / 2) / scale, axis=1) / _ROOT_2PI
        newton = guess - excess / np.maximum(slope, np.finfo(float).tiny)
        new = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
        settled = np.all(np.abs(new - guess) <= _TOLERANCE * spread)
        guess = new
        if settled:
            break
    return guess


def poisson_quantile(rate: Float[np.ndarray, "b s"], probability: float) -> Float[np.ndarray, " b"]:
    """The least whole number k with (1/S) Σ_s P(Y ≤ k | rate_s) ≥ probability: by halves."""
    parts = np.nan_to_num(pdtrik(probability, rate), nan=0.0)
    low, high = np.floor(parts.min(1)) - 1, np.ceil(parts.max(1)) + 1
    low = np.maximum(low, -1)
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        enough = pdtr(middle[:, None], rate).mean(1) >= probability
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high
