"""`theorems`: the sparse optimum of Theorem 1, and the local variances of Theorem 2, along chains."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ... import problems, recipes
from ...recipes import Method
from ...result.run import Run
from ...target.target import Target
from ...theory import first_order_change, local_traces, optimal_weights
from ..panels import Curve, Panel, draw
from .claims import Claim, Interval, decide, interval
from .experiment import Experiment, Outcome, Work
from .gaussian import shared

STEPS = (1e-4, 1e-3, 5e-3, 2e-2, 5e-2, 0.1)
_SMALL, _PRINTED = 1e-4, 5e-2
_THIN = 50


class Setting(NamedTuple):
    """A posterior, and the EWSG chain with one datum per minibatch that visits the points."""

    title: str
    target: Target
    init: Any
    method: Method
    friction: float
    step_size: float


def run(work: Work) -> Outcome:
    """At points of EWSG chains: the linear program, and traces under uniform, EWSG and optimal weights."""
    settings = _settings()
    points = {name: _points(work, name, setting) for name, setting in settings.items()}
    rows = {name: _traces(work, settings[name], points[name]["path"]) for name in settings}
    apart = {name: _traces(work, settings[name], points[name]["ends"]) for name in settings}
    repeats = work.part("Theorem 2, fresh centres", {"points": work["points"]}, lambda: _fresh(work["points"]))
    _figure(work, rows, repeats)
    return Outcome(
        numbers={
            "along_a_chain": rows,
            "ends_of_chains": apart,
            "theorem_2_over_draws_of_the_centres": repeats,
            "step_sizes": list(STEPS),
        },
        claims=[claim for name in settings for claim in _theorem_1(settings[name], apart[name])] + _theorem_2(repeats),
        figures={
            "traces": "Local variance of one stochastic gradient along a chain of EWSG: trace of its covariance under "
            "uniform weights, EWSG's weights (limit of its index chain, h = 0.05 on the Gaussian, 0.0001 on Pima) and "
            "the best unbiased weights of Theorem 1.",
            "sign": "Theorem 2's Δ, trace under EWSG's weights minus trace under uniform ones, relative to the latter, "
            "against h; mean and 95 % interval over fresh draws of the centres, θ and r. Dotted: to first order in h.",
        },
        reading=[
            "Theorem 2 treats the weights as independent of the gradients; EWSG's depend on them. To first order in h, "
            "Δ = (h/2σ²)(Var ‖e‖² + 2(γr + ∇V)·E[e‖e‖²]), whose first term is never negative.",
            "Draws keep no momentum: r is drawn from N(0, I).",
            "On Pima h = 0.0001: at h = 0.01, where minibatches of 40 are accurate, the weights of single data put all "
            "weight on one datum, so that the variance is 0 and the bias is as large as the gradients.",
        ],
        tuning={"rule": "none: chains with h = 0.05 (Gaussian) and h = 0.0001 (Pima), γ = 10, b = 1"},
    )


def _settings() -> dict[str, Setting]:
    gaussian = Setting(
        "Gaussian, n = 50, d = 2",
        shared.target(shared.FIRST_DRAW),
        jnp.zeros(2),
        recipes.ewsg(1, _PRINTED, shared.FRICTION),
        shared.FRICTION,
        _PRINTED,
    )
    pima = problems.load("pima")
    start = jnp.asarray(problems.answer("pima", pima).start)
    method = recipes.ewsg(1, _SMALL, pima.friction)
    return {"gaussian": gaussian, "pima": Setting(pima.title, pima.target, start, method, pima.friction, _SMALL)}


def _points(work: Work, name: str, setting: Setting) -> dict[str, list[list[float]]]:
    """The path of one chain, and the ends of many, which are independent."""
    number = work["points"]

    def measure(run: Run) -> dict[str, list[list[float]]]:
        draws = np.asarray(run.good_draws(), np.float64)
        return {"path": draws[0].tolist(), "ends": draws[:number, -1].tolist()}

    part = work.sample(
        setting.title,
        setting.target,
        setting.method,
        measure,
        init=setting.init,
        num_chains=work["chains"][name],
        num_steps=_THIN * number,
        discard=0,
        thin=_THIN,
    )
    return part["value"]


def _traces(work: Work, setting: Setting, points: list[list[float]]) -> list[dict[str, float]]:
    """Traces, bias and support at every point."""
    h = setting.step_size
    rng = np.random.default_rng(0)

    def at(point: list[float]) -> dict[str, Any]:
        position = jnp.asarray(point, jnp.float32)
        momentum = jnp.asarray(rng.normal(size=len(point)), jnp.float32)
        traces = local_traces(setting.target, position, momentum, h, setting.friction)
        return traces._asdict() | {"support": optimal_weights(setting.target, position).support}

    return work.part(f"traces, {setting.title}", {"points": points, "h": h}, lambda: [at(point) for point in points])


def _fresh(number: int) -> list[dict[str, list[float]]]:
    """Δ/uniform for each h, and its first order, for independent draws of centres, position and momentum."""
    rng = np.random.default_rng(1)
    rows = []
    for k in range(number):
        target = shared.target(2000 + k)
        centre = np.mean(np.asarray(target.data.arrays, np.float64), axis=0)
        position = jnp.asarray(centre + rng.normal(size=2) / np.sqrt(shared.NUM_DATA), jnp.float32)
        momentum = jnp.asarray(rng.normal(size=2), jnp.float32)
        change, first = [], []
        for h in STEPS:
            traces = local_traces(target, position, momentum, h, shared.FRICTION, with_optimal=False)
            change.append(traces.exponential / traces.uniform - 1)
            first.append(first_order_change(target, position, momentum, h, shared.FRICTION) / traces.uniform)
        rows.append({"change": change, "first_order": first})
    return rows


def _theorem_1(setting: Setting, rows: list[dict[str, float]]) -> list[Claim]:
    dimension = np.size(setting.init)
    largest = max(int(row["support"]) for row in rows)
    gain = interval([row["optimal"] / row["uniform"] for row in rows])
    change = interval([row["exponential"] / row["uniform"] for row in rows])
    bias = interval([row["bias"] / row["uniform"] ** 0.5 for row in rows])
    return [
        Claim(
            f"Theorem 1: the best unbiased weights have at most d + 1 = {dimension + 1} non-zeros ({setting.title})",
            "proved",
            f"at most {largest} at {len(rows)} points",
            "yes" if largest <= dimension + 1 else "no",
        ),
        Claim(
            f"and a smaller local variance than uniform ones ({setting.title})",
            "yes",
            f"ratio of traces {gain}",
            decide(gain, high=1.0),
        ),
        Claim(
            f"Theorem 2: EWSG's weights have a smaller local variance than uniform ones where its chain is "
            f"({setting.title}, h = {setting.step_size:g})",
            "yes, with high probability",
            f"ratio of traces {change}; bias {bias} in units of the uniform sd",
            decide(change, high=1.0),
        ),
    ]


def _theorem_2(repeats: list[dict[str, list[float]]]) -> list[Claim]:
    claims = []
    for h in (_SMALL, 5e-3, _PRINTED):
        found = _interval(repeats, STEPS.index(h))
        text = f"Theorem 2: E[Δ] < 0 over draws of the centres, h = {h:g}"
        claims.append(Claim(text, "proved, for small x", f"E[Δ]/uniform trace = {found}", decide(found, high=0.0)))
    return claims


def _interval(repeats: list[dict[str, list[float]]], k: int) -> Interval:
    return interval([row["change"][k] for row in repeats])


def _figure(work: Work, rows: dict[str, Any], repeats: list[dict[str, list[float]]]) -> None:
    names = {"uniform weights": "uniform", "EWSG's weights": "exponential", "best unbiased weights": "optimal"}
    titles = {"gaussian": "Gaussian, n = 50", "pima": "Pima, n = 614"}
    panels = []
    for key, title in titles.items():
        steps = _THIN * (1 + np.arange(len(rows[key])))
        curves = {label: Curve(steps, [row[name] for row in rows[key]]) for label, name in names.items()}
        panels.append(Panel(curves, title, "step of the chain", "trace of the local covariance"))
    draw(work.figure("traces"), panels)
    found = [_interval(repeats, k) for k in range(len(STEPS))]
    first = np.mean([row["first_order"] for row in repeats], axis=0)
    curve = Curve(STEPS, [f.value for f in found], [f.low for f in found], [f.high for f in found])
    lines = {"uniform weights": 0.0, "to first order in h": (STEPS[:3], first[:3])}
    label = "EWSG's weights, mean and 95 % interval"
    axis = "change of the local variance, Δ/uniform"
    panel = Panel({label: curve}, "Theorem 2 says: below zero", "step size h", axis, "semilogx", lines)
    draw(work.figure("sign"), [panel], width=6.0)


EXPERIMENT = Experiment(
    "theorems",
    "sparse optimum of Theorem 1; local covariance trace of uniform, EWSG and optimal weights along a chain",
    {
        "smoke": {"chains": {"gaussian": 400, "pima": 40}, "points": 12},
        "laptop": {"chains": {"gaussian": 400, "pima": 400}, "points": 100},
        "paper": {"chains": {"gaussian": 1000, "pima": 1000}, "points": 1000},
    },
    run,
)
