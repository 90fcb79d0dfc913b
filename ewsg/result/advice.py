"""The warnings of a summary: what looks wrong with a run, and what to do about it."""

from typing import TYPE_CHECKING

import numpy as np

from . import heat, paired
from .estimates import Estimates
from .mixing import mixing
from .remedy import PLAN, smaller_step

if TYPE_CHECKING:
    from .run import Run

_TEMPERATURE_TOLERANCE = 0.1
_RHAT_LIMIT = 1.05
_LISTED_CHAINS = 10
_LOWER = f"Lower the step size tenfold, or {PLAN}."


def advice(run: "Run", diagnostics: dict[str, float], found: Estimates) -> list[str]:
    """One warning for everything that looks wrong; empty when all is well."""
    unmixed = _mixing_warnings(found)
    return [
        *_not_reached(run),
        *_failures(run),
        *_interruption(run),
        *_bias(run, diagnostics, bool(unmixed)),
        *unmixed,
        *_still(found),
    ]


def _bias(run: "Run", diagnostics: dict[str, float], unmixed: bool) -> list[str]:
    """Reasons why the draws may not be from the posterior; the verdict of a planned run has already given them."""
    if run.verdict is not None:
        return []
    return (
        _far_too_hot(run, diagnostics)
        or paired.warnings(diagnostics, run.settings)
        or _temperature_warnings(run, diagnostics, unmixed)
        or ([] if unmixed else heat.warnings(run))
    )


def _not_reached(run: "Run") -> list[str]:
    """The verdict of a planned run that is less accurate than it was meant to be."""
    verdict = run.verdict
    return [] if verdict is None or verdict.fine else [str(verdict)]


def no_draws(run: "Run") -> str:
    """The sentence for a run that kept nothing."""
    done, discard = run.settings["num_steps"], run.settings.get("discard", 0)
    if not run.settings.get("interrupted"):
        return f"No draw was kept of {done} steps: run longer, or lower thin= or discard=."
    return (
        f"The run was interrupted after {_steps(run)}, before any draw was kept (the first {discard} steps are "
        'discarded): to continue, run.save("run.npz") and ewsg.resume("run.npz", target).'
    )


def _steps(run: "Run") -> str:
    done, planned = run.settings["num_steps"], run.settings.get("planned_steps", 0)
    return f"{done}{f' of {planned}' if planned > done else ''} steps"


def _interruption(run: "Run") -> list[str]:
    if not run.settings.get("interrupted"):
        return []
    return [
        f'The run was interrupted after {_steps(run)}: to continue, run.save("run.npz") and '
        'ewsg.resume("run.npz", target).'
    ]


def _failures(run: "Run") -> list[str]:
    sentences = []
    for status, what in (("nonfinite", "became NaN or infinite"), ("diverged", "diverged")):
        chains = np.flatnonzero(run.status == status)
        if chains.size:
            listed = ", ".join(map(str, chains[:_LISTED_CHAINS])) + (", ..." if chains.size > _LISTED_CHAINS else "")
            sentences.append(
                f"{chains.size} of {run.status.size} chains {what} and are left out here (chains {listed}). "
                f"{run.settings.get('likely_cause', _LOWER)}"
            )
    return sentences


def _far_too_hot(run: "Run", diagnostics: dict[str, float]) -> list[str]:
    """One warning for chains that are finite but far too hot, as when the gradients of the model are bounded."""
    hot = int(run.hot.sum())
    if not hot:
        return []
    shown = next(name for name in ("kinetic_temperature", "configurational_temperature") if name in diagnostics)
    return [
        f"{hot} of {run.status.size} chains are finite but far too hot ({shown.replace('_', ' ')} "
        f"{diagnostics[shown]:.2g} against {run.temperature:g}): their draws are not from the posterior. "
        f"{run.settings.get('likely_cause', _LOWER)} If the columns of the data differ in scale, "
        "standardise them."
    ]


def _temperature_warnings(run: "Run", diagnostics: dict[str, float], unmixed: bool) -> list[str]:
    """One warning if position or momentum is hotter or colder than T by more than 10 % plus its Monte-Carlo error.

    Paired selection heats the momentum several times as much as the position, whose error it predicts better itself:
    there the momentum is allowed 25 %.

    The configurational temperature is −(θ − c)·force/d, with c the position of the chain when recording began. It is
    far from T until the chain has forgotten c. If the momentum is at T and the gradient noise is too small to explain
    the deviation (it moves the temperature by about the noise ratio), then the chain has not mixed, and a smaller step
    would make that worse.
    """
    off = {name: _deviation(run, diagnostics, name) for name in ("kinetic_temperature", "configurational_temperature")}
    culprit = max(off, key=lambda name: abs(off[name]))
    worst = off[culprit]
    if not worst:
        return []
    noise = diagnostics.get("noise_ratio", np.nan)
    shown = f"{culprit.replace('_', ' ')} {_number(diagnostics[culprit])} against {run.temperature:g}"
    innocent = not off["kinetic_temperature"] and not noise > abs(worst) / 2
    if innocent and unmixed:
        return []
    if innocent and worst < 0:
        return [
            f"The chains have not mixed: {shown}, although the gradient noise is only {noise:.2g} times the injected "
            "noise. They are still near their starting points: run longer, discard more of the start, or "
            "reparametrise."
        ]
    return [
        f"The chains are {'hotter' if worst > 0 else 'colder'} than the target temperature: {shown}, gradient noise "
        f"{noise:.2g} times the injected noise. The posterior variance is off by about as much: "
        f"{smaller_step(run.settings, 2 * abs(worst) / _TEMPERATURE_TOLERANCE)}."
    ]


def _deviation(run: "Run", diagnostics: dict[str, float], name: str) -> float:
    """The relative deviation of a temperature from T; 0 within its tolerance and Monte-Carlo error, or if unknown."""
    tolerance = _TEMPERATURE_TOLERANCE
    if name == "kinetic_temperature" and paired.is_paired(diagnostics):
        tolerance = paired.KINETIC_TOLERANCE
    relative = diagnostics.get(name, np.nan) / run.temperature - 1
    if abs(relative) > tolerance + 3 * _standard_error(run, name):
        return relative
    by_chain = run.stats[name][run.ok].mean(axis=1, dtype=np.float64) if name in run.stats else np.zeros(0)
    return relative if heat.is_hot(by_chain / run.temperature, tolerance, 3.0) else 0.0


def _standard_error(run: "Run", name: str) -> float:
    """The standard error of the mean over chains and draws, relative to T; infinite with too few values."""
    values = run.stats[name][run.ok] if name in run.stats else np.zeros((0, 0))
    if values.size < 4:
        return np.inf
    sd = values.std() / run.temperature
    ess = float(mixing(values[None]).ess[0]) if values.shape[1] >= 4 else values.shape[0]
    return float(sd / np.sqrt(max(ess, 1.0))) if np.isfinite(ess) else np.inf


def _mixing_warnings(found: Estimates) -> list[str]:
    worst = found.worst
    if worst is None or not worst.rhat > _RHAT_LIMIT:
        return []
    return [
        f"The chains have not mixed: R-hat is {worst.rhat:.2f} for {worst.name} (above {_RHAT_LIMIT}). "
        "Run longer, or discard more of the start."
    ]


def _still(found: Estimates) -> list[str]:
    if found.still is None:
        return []
    return [
        f"All draws of {found.still} are equal: the chains did not move there. Check that the step size is not too "
        "small for the floating-point precision of the parameters, and that proposals are accepted."
    ]


def _number(value: float) -> str:
    """Two decimals; three digits for large numbers."""
    return f"{value:.2f}" if abs(value) < 1000 else f"{value:.3g}"
