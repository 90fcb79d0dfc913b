"""The error of the posterior sd that is to be expected of a run with `Paired`, from its diagnostics."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from .remedy import smaller_step

_SD_ERROR_LIMIT = 0.05
_LARGEST_SHOWN_ERROR = 0.5
_MOMENTS = {
    "tilt_second": "second",
    "tilt_lean": "lean",
    "tilt_squared_share": "squared_share",
    "noise_ratio": "noise_ratio",
}
_SEQUENTIAL_RATIO = 0.5
"""The error of the rule `sequential` relative to that of `weight`."""
KINETIC_TOLERANCE = 0.25
"""Relative deviation allowed to the momentum, which paired selection heats several times as much as the position."""
_ALWAYS = {"tilt_second", "clipped", "noise_ratio"}
_OWN = ({"tilt_lean", "tilt_squared_share"}, {"tilt_fourth"})
"""The further stats of a run with `Paired`, in this version and in 0.1.0."""


def are_whole(names: Iterable[str]) -> bool:
    """Whether no stats of a run with `Paired` are missing, be it of this version or of 0.1.0."""
    found = set(names)
    return "tilt_second" not in found or (found >= _ALWAYS and any(found >= own for own in _OWN))


def diagnose(means: dict[str, float], estimator: Any = None) -> dict[str, float]:
    """The means of a run's stats, with the tilts of `Paired` replaced by the error predicted from them.

    Args:
        means: the mean of each stat by name.
        estimator: the run's `settings["estimator"]`, which contains the rule of `Paired`.
    """
    shown = {name: value for name, value in means.items() if not name.startswith("tilt_")}
    if not means.get("tilt_second"):
        return shown
    if "tilt_lean" not in means:  # a file of version 0.1.0, which predicted as if no pair were clipped
        means = means | {"tilt_lean": means["tilt_second"], "tilt_squared_share": means["tilt_fourth"] / 4}
    moments = {argument: means[name] for name, argument in _MOMENTS.items()}
    return shown | {"predicted_sd_error": predicted_sd_error(**moments, rule=rule_of(estimator))}


def rule_of(estimator: Any) -> str:
    """The rule of `Paired` in the description of an estimator, whatever wraps it; "weight" if there is none."""
    while isinstance(estimator, dict):
        if estimator.get("component") == "Paired":
            return estimator.get("rule", "weight")
        estimator = estimator.get("inner")
    return "weight"


def predicted_sd_error(
    second: float, lean: float, squared_share: float, noise_ratio: float, rule: str = "weight"
) -> float:
    r"""ρ/(1 + ρ) · E[p²D²]/(6 E[D²]) + ½ ρ l/(1 + ρ(1 − l)),   l = 1 − E[2pD]/E[D²]; half of it for `sequential`.

    Approximates the relative error that the one-step tilts D of `Paired` leave in the posterior sd. Here p is D/2
    clipped at ±1, l the share of the friction that clipping loses, and ρ the noise ratio. For small D nothing is lost,
    and the error is (τ₄/8) ρ/(1 + ρ), τ₄ = E[D⁴]/(3 E[D²]). If all pairs are clipped, the first term grows no further,
    and the second is the heat ρ/2 of uniform minibatches.

    Args:
        second: E[D²].
        lean: E[2pD].
        squared_share: E[p²D²].
        noise_ratio: ρ.
        rule: the rule of `Paired`.
    """
    if second <= 0:
        return 0.0
    lost = max(0.0, 1 - lean / second)
    tilted = noise_ratio / (1 + noise_ratio) * squared_share / (6 * second)
    heat = 0.5 * noise_ratio * lost / (1 + noise_ratio * (1 - lost))
    return (_SEQUENTIAL_RATIO if rule == "sequential" else 1.0) * (tilted + heat)


def sd_error_of_stats(stats: Mapping[str, np.ndarray], rule: str) -> float:
    """`predicted_sd_error` from the recorded stats of a run."""
    return predicted_sd_error(**{argument: float(stats[name].mean()) for name, argument in _MOMENTS.items()}, rule=rule)


def sd_error_of_tilts(tilts: Float[np.ndarray, "..."], noise_ratio: float, rule: str) -> float:
    """`predicted_sd_error` from samples of D."""
    share = np.clip(tilts / 2, -1, 1)
    return predicted_sd_error(
        second=float(np.mean(tilts**2)),
        lean=float(np.mean(2 * share * tilts)),
        squared_share=float(np.mean((share * tilts) ** 2)),
        noise_ratio=noise_ratio,
        rule=rule,
    )


def is_paired(diagnostics: dict[str, float]) -> bool:
    """Whether a run used paired selection, by its diagnostics."""
    return "predicted_sd_error" in diagnostics


def warnings(diagnostics: dict[str, float], settings: dict[str, Any]) -> list[str]:
    """One warning if paired selection is not expected to compensate for the noise of its minibatches.

    Its error falls at least as fast as the step size, and with the third power of it if few pairs are clipped.
    """
    error = diagnostics.get("predicted_sd_error", 0.0)
    if error <= _SD_ERROR_LIMIT:
        return []
    amount = f"{error:.0%}" if error < _LARGEST_SHOWN_ERROR else f"more than {_LARGEST_SHOWN_ERROR:.0%}"
    return [
        f"The minibatches are too noisy for paired selection at this step: the posterior sd is expected to be off by "
        f"{amount} (gradient noise {diagnostics['noise_ratio']:.2g} times the injected noise, "
        f"{diagnostics['clipped']:.0%} of the pairs clipped): "
        f"{smaller_step(settings, error / _SD_ERROR_LIMIT)}."
    ]
