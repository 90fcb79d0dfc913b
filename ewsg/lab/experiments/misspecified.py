"""`misspecified`: a normal model for log-normal data, where FlyMC is slow (App. G)."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.special import digamma, polygamma

from ... import recipes
from ...kernels import FlyMC, GaussianTaylorBound, RandomWalk
from ...problems.skewed import log_likelihood
from ...recipes import Method
from ...result.run import Run
from ...sampler import AbstractKernel
from ...target.target import Target
from .. import figures
from ..styles import style
from .claims import Claim, decide, difference, interval
from .experiment import Experiment, Outcome, Work

STEP_SIZE, FRICTION, SHARE = 1e-4, 300.0, 0.109
PROPOSAL = 1.0
_OFFSET, _POINTS, _LAGS = 10.0, 150, 26
FLYMC, FLYMC_AT_MODE, FLYMC_TIGHT = "FlyMC", "FlyMC from the mode", "FlyMC, bound by datum"
EWSG, METROPOLIS, PAIRED = "EWSG", "random-walk Metropolis", "paired (ours)"
_NAMES = (FLYMC, FLYMC_AT_MODE, FLYMC_TIGHT, EWSG, METROPOLIS, PAIRED)


class Exact(NamedTuple):
    """Posterior mean and sd of (μ, log σ)."""

    mean: np.ndarray
    sd: np.ndarray


def run(work: Work) -> Outcome:
    """All chains start 10 posterior sd away in both parameters; a second FlyMC starts at the mode."""
    data = np.exp(np.random.default_rng(0).normal(size=work["num_data"])).astype(np.float32)
    target, truth = Target(log_likelihood, None, data), exact(data)
    found = {name: _sample(work, name, target, truth) for name in _NAMES}
    _figure(work, found)
    return Outcome(
        numbers={"exact": {"mean": truth.mean.tolist(), "sd": truth.sd.tolist()}, "methods": found},
        claims=_claims(work, found),
        figures={
            "figure": "Left: autocorrelation of log σ against the lag in iterations, mean over chains. Middle: draws "
            "after the burn-in in posterior standard deviations, with the exact 95 % region. Right: share of the data "
            f"that FlyMC uses in an iteration. n = {len(data):,}; chains start 10 posterior sd away in both parameters."
        },
        reading=[
            "The start is not given, and is decisive: from 10 posterior sd away a fifth of the data is bright at "
            "first and holds FlyMC back; from the mode it is not. Both are shown, and so is a bound with a remainder "
            "for each datum, under which hardly any datum is bright.",
            "FlyMC's bound is the second-order Taylor expansion of Bardenet et al. with one cubic remainder for all "
            "data; its step is fixed, in proportion to the posterior sd of log σ, where theirs adapts.",
            "The posterior is known exactly (normal model, flat prior on (μ, log σ)); random-walk Metropolis is run "
            "beside it as in the paper.",
        ],
        tuning={
            "EWSG": {"step_size": STEP_SIZE, "friction": FRICTION},
            "rule": "none: the printed step and friction, the same for paired; proposals of FlyMC and Metropolis have "
            f"the sd {PROPOSAL:g} × √(product of the posterior sd)",
        },
    )


def exact(data: np.ndarray) -> Exact:
    """σ² is inverse gamma, μ given σ normal: mean and sd of (μ, log σ) in closed form."""
    n, x = len(data), data.astype(np.float64)
    shape, squares = (n - 1) / 2, n * x.var()
    mean = np.array([x.mean(), 0.5 * (np.log(squares / 2) - digamma(shape))])
    return Exact(mean, np.array([np.sqrt(squares / (n * (n - 3))), 0.5 * np.sqrt(polygamma(1, shape))]))


def _method(name: str, target: Target, truth: Exact) -> Method | AbstractKernel:
    batch, proposal = round(SHARE * target.num_data), float(PROPOSAL * np.sqrt(np.prod(truth.sd)))
    if name in (FLYMC, FLYMC_AT_MODE, FLYMC_TIGHT):
        return FlyMC(GaussianTaylorBound("datum" if name == FLYMC_TIGHT else "largest"), proposal, resample=0.1)
    if name == METROPOLIS:
        return RandomWalk(step_size=proposal)
    if name == EWSG:
        return recipes.ewsg(batch, STEP_SIZE, FRICTION)
    return recipes.paired(batch, STEP_SIZE, FRICTION)


def _sample(work: Work, name: str, target: Target, truth: Exact) -> dict[str, Any]:
    start = truth.mean + (0.0 if name == FLYMC_AT_MODE else _OFFSET) * truth.sd
    iterations = {"num_steps": work["iterations"], "discard": 0}
    options: dict[str, Any] = (
        {"data_passes": work["data_passes"], "discard": 0} if name in (EWSG, PAIRED) else iterations
    )

    def measure(run: Run) -> dict[str, Any]:
        places = (np.asarray(run.good_draws(), np.float64) - truth.mean) / truth.sd
        late = places[:, work["burn_in"] :]
        lags = np.unique(np.linspace(0, work["largest_lag"], _LAGS).round().astype(int))
        used = run.stats["bright"][run.ok] / target.num_data if "bright" in run.stats else None
        return {
            "lags": lags.tolist(),
            "autocorrelation": [autocorrelation(chain[:, 1], lags).tolist() for chain in late],
            "mean_error": np.sqrt(np.mean(late.mean(1) ** 2, axis=1)).tolist(),
            "sd_ratio": late.std(1).tolist(),
            "draws": late[0, np.linspace(0, late.shape[1] - 1, _POINTS).astype(int)].tolist(),
            "used": None if used is None else (0.1 + used.mean(1)).tolist(),
            "used_over_time": None if used is None else (0.1 + used.mean(0)).tolist()[:: max(1, used.shape[1] // 400)],
        }

    return work.sample(
        name,
        target,
        _method(name, target, truth),
        measure,
        init=jnp.asarray(start, jnp.float32),
        num_chains=work["chains"],
        thin=1,
        **options,
    )


def autocorrelation(values: np.ndarray, lags: np.ndarray) -> np.ndarray:
    """Corr(x_t, x_{t+lag}), about the chain's own mean."""
    centred = values - values.mean()
    size = len(values)
    return np.array([np.dot(centred[: size - lag], centred[lag:]) for lag in lags]) / np.dot(centred, centred)


def _claims(work: Work, found: dict[str, Any]) -> list[Claim]:
    values = {name: row["value"] for name, row in found.items()}
    lag = work["largest_lag"]
    end = {name: [chain[-1] for chain in value["autocorrelation"]] for name, value in values.items()}
    used, slow = interval(values[FLYMC]["used"]), interval(end[FLYMC])
    faster = difference(end[EWSG], end[FLYMC])
    error = {name: interval(value["mean_error"]) for name, value in values.items()}
    spread = {name: interval([chain[1] for chain in value["sd_ratio"]]) for name, value in values.items()}
    apart = difference(values[PAIRED]["mean_error"], values[EWSG]["mean_error"])
    mode, tight = interval(end[FLYMC_AT_MODE]), interval(end[FLYMC_TIGHT])
    return [
        Claim(
            "FlyMC uses 10.9 % of the data per iteration (within 2 %)", "0.109", f"{used}", decide(used, 0.089, 0.129)
        ),
        Claim(
            f"FlyMC's autocorrelation at lag {lag} is still strong (above 0.3)", "yes", f"{slow}", decide(slow, low=0.3)
        ),
        Claim(
            f"EWSG's autocorrelation at lag {lag} is below FlyMC's",
            "yes",
            f"difference {faster}",
            decide(faster, high=0.0),
        ),
        Claim(
            "EWSG's draws centre on the posterior (within half an sd)",
            "yes",
            f"error of the mean {error[EWSG]} sd",
            decide(error[EWSG], high=0.5),
        ),
        Claim(
            "FlyMC's draws are far from the posterior (by more than an sd)",
            "yes",
            f"error of the mean {error[FLYMC]} sd",
            decide(error[FLYMC], low=1.0),
        ),
        Claim(
            "not in the paper: FlyMC is slow even when it starts at the mode (autocorrelation above 0.3)",
            "-",
            f"{mode}; error of the mean {error[FLYMC_AT_MODE]} sd",
            decide(mode, low=0.3),
        ),
        Claim(
            "not in the paper: FlyMC is slow even with a bound by datum (autocorrelation above 0.3)",
            "-",
            f"{tight}; error of the mean {error[FLYMC_TIGHT]} sd",
            decide(tight, low=0.3),
        ),
        Claim(
            "not in the paper: EWSG's sd of log σ is right (within 10 %)",
            "-",
            f"ratio {spread[EWSG]}; paired {spread[PAIRED]}",
            decide(spread[EWSG], 0.9, 1.1),
        ),
        Claim(
            "not in the paper: paired errs less than EWSG in the mean",
            "-",
            f"difference {apart} sd",
            decide(apart, high=0.0),
        ),
    ]


def _figure(work: Work, found: dict[str, Any]) -> None:
    with figures.drawing(work.figure("figure"), columns=3) as (figure, axes):
        left, middle, right = axes
        for name, row in found.items():
            color, marker, line = style(name)
            value = row["value"]
            chains = np.array(value["autocorrelation"])
            look = {"color": color, "marker": marker, "markersize": 4}
            left.plot(value["lags"], chains.mean(0), linestyle=line, markevery=3, label=name, **look)
            if name in (FLYMC, EWSG, PAIRED):
                middle.plot(*np.array(value["draws"]).T, linestyle="none", alpha=0.6, **look)
            if value["used_over_time"] is not None:
                shown = 100 * np.array(value["used_over_time"])
                right.plot(np.linspace(1, work["iterations"], len(shown)), shown, color=color, linestyle=line)
        angle = np.linspace(0, 2 * np.pi, 100)
        middle.plot(2.448 * np.cos(angle), 2.448 * np.sin(angle), color="0.3", label="exact 95 % region")
        left.axhline(0, color="0.6", linewidth=1)
        left.set(xlabel="lag (iterations)", ylabel="autocorrelation of log σ", title="Memory")
        middle.set(xlabel="μ (posterior sd from its mean)", ylabel="log σ (posterior sd)", title="Where the draws lie")
        right.set(xlabel="iteration", ylabel="data used by FlyMC (%)", title="Work of FlyMC")
        right.set_ylim(0)
        handles, labels = left.get_legend_handles_labels()
        ellipse = middle.get_legend_handles_labels()
        figure.legend(handles + ellipse[0], labels + ellipse[1], loc="outside lower center", ncols=3, fontsize=8.5)


EXPERIMENT = Experiment(
    "misspecified",
    "FlyMC's bright share, autocorrelation of FlyMC, EWSG, MH; where the samples lie",
    {
        "smoke": {
            "num_data": 5000,
            "chains": 2,
            "iterations": 600,
            "data_passes": 60,
            "burn_in": 60,
            "largest_lag": 50,
        },
        "laptop": {
            "num_data": 100_000,
            "chains": 4,
            "iterations": 10_000,
            "data_passes": 1090,
            "burn_in": 1000,
            "largest_lag": 500,
        },
        "paper": {
            "num_data": 100_000,
            "chains": 20,
            "iterations": 10_000,
            "data_passes": 1090,
            "burn_in": 1000,
            "largest_lag": 500,
        },
    },
    run,
)
