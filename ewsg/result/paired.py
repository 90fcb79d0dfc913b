"""How far the posterior sd of a run with `Paired` may be off, from the diagnostics that it leaves."""

_SD_ERROR_LIMIT = 0.05
_LARGEST_SHOWN_ERROR = 0.5
_MOMENTS = {"tilt_second": "second", "tilt_fourth": "fourth", "noise_ratio": "noise_ratio"}
KINETIC_TOLERANCE = 0.25
"""Paired selection heats the momentum several times as much as the position: only this relative deviation counts."""
COMPANIONS = {"tilt_second": ("tilt_fourth", "clipped", "noise_ratio")}
"""Stats that a run has only together."""


def diagnose(means: dict[str, float]) -> dict[str, float]:
    """The means of a run's stats, with what `Paired` recorded of its tilts replaced by the error that it predicts."""
    shown = {name: value for name, value in means.items() if not name.startswith("tilt_")}
    if not means.get("tilt_second"):
        return shown
    return shown | predicted_sd_error(**{argument: means[name] for name, argument in _MOMENTS.items()})


def predicted_sd_error(second: float, fourth: float, noise_ratio: float) -> dict[str, float]:
    """τ₄ = mean(D⁴)/(3 mean(D²)) of the tilts D of paired selection, and (τ₄/8) ρ/(1 + ρ).

    The latter approximates the relative error that the clipped, one-step tilt of `Paired(rule="weight")` leaves in the
    posterior sd; `select` errs by somewhat more, `sequential` by less.
    """
    tau = fourth / (3 * second)
    return {"tau_4": tau, "predicted_sd_error": tau / 8 * noise_ratio / (1 + noise_ratio)}


def is_paired(diagnostics: dict[str, float]) -> bool:
    """Whether a run used paired selection, by its diagnostics."""
    return "predicted_sd_error" in diagnostics


def warnings(diagnostics: dict[str, float]) -> list[str]:
    """One sentence when paired selection is not expected to compensate for the noise of its minibatches."""
    error = diagnostics.get("predicted_sd_error", 0.0)
    if error <= _SD_ERROR_LIMIT:
        return []
    amount = f"{error:.0%}" if error < _LARGEST_SHOWN_ERROR else f"more than {_LARGEST_SHOWN_ERROR:.0%}"
    return [
        f"The minibatches are too noisy for paired selection at this step: the posterior sd is expected to be off by "
        f"{amount} (tau_4 {diagnostics['tau_4']:.2g}, gradient noise {diagnostics['noise_ratio']:.2g} times the "
        f"injected noise, {diagnostics['clipped']:.0%} of the pairs clipped): halve the step size or double the batch "
        "size."
    ]
