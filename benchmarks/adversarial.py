"""Posteriors that break samplers, nothing set: each must end in a right answer or in a sentence that names the cause.

    python benchmarks/adversarial.py            # all of them, against NUTS (BlackJAX): about 20 minutes of one core
    python benchmarks/adversarial.py funnel     # those whose names contain a word

Per posterior: the verdict, and the share of means and sds within 0.05 of NUTS' (whose own error counts against us); or
the sentence of `ewsg.errors.NoPlan`.
"""

import sys
import time
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

import ewsg

RNG = np.random.default_rng(0)
COEFFICIENTS = np.array([1.0, 0.5, 0.0, 0.0, -0.5])
X = RNG.normal(size=(1000, 5))


def labels(x: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Of a logistic regression."""
    return RNG.random(len(x)) < 1 / (1 + np.exp(-(x @ coefficients)))


Y = labels(X, COEFFICIENTS)
HEAVY = RNG.standard_t(2, size=(2000, 5))
WIDE = RNG.normal(size=(30, 50))
RARE = np.column_stack([np.ones(50_000), RNG.normal(size=(50_000, 4))])
MIXTURE = np.concatenate([RNG.normal(-2, 0.5, 100), RNG.normal(2, 0.5, 100)]).astype(np.float32)
OUTLIER = np.vstack([100 * X[:1], X[1:]])
COLLINEAR = np.column_stack([X, X[:, 0] + X[:, 1]])
HEAVY_LABELS, WIDE_LABELS = labels(HEAVY, COEFFICIENTS), labels(WIDE, np.full(50, 0.3))
RARE_LABELS = labels(RARE, np.array([-7.0, 0.5, 0.5, 0.0, 0.0]))


def funnel() -> ewsg.Target:
    """Neal's: v ~ N(0, 3²), x_1..x_9 ~ N(0, eᵛ); the data say nothing."""

    def log_prior(params):
        v, x = params["v"], params["x"]
        return -0.5 * (v / 3) ** 2 - 0.5 * jnp.sum(x**2) * jnp.exp(-v) - 4.5 * v

    init = {"v": np.float32(0), "x": np.zeros(9, np.float32)}
    return ewsg.Target(lambda params, y: 0.0 * y * params["v"], log_prior, np.zeros(10, np.float32), init=init)


def two_modes() -> ewsg.Target:
    """A mixture of two Gaussians whose labels can be exchanged."""

    def log_likelihood(mu, y):
        return jnp.logaddexp(-2 * (y - mu[0]) ** 2, -2 * (y - mu[1]) ** 2)

    init = np.array([-0.1, 0.1], np.float32)
    return ewsg.Target(log_likelihood, lambda mu: -0.02 * jnp.sum(mu**2), MIXTURE, init=init)


def flat_direction() -> ewsg.Target:
    """The second parameter is in neither the likelihood nor the prior."""
    init = np.zeros(2, np.float32)
    return ewsg.Target(lambda params, y: -0.5 * (y - params[0]) ** 2, None, MIXTURE, init=init)


CASES: dict[str, Callable[[], ewsg.Target]] = {
    "complete separation": lambda: ewsg.models.logistic(X, X[:, 0] > 0),
    "complete separation, flat prior": lambda: ewsg.models.logistic(X, X[:, 0] > 0, prior_precision=0.0),
    "exact collinearity": lambda: ewsg.models.logistic(COLLINEAR, Y),
    "exact collinearity, flat prior": lambda: ewsg.models.logistic(COLLINEAR, Y, prior_precision=0.0),
    "one outlier of 100 sd": lambda: ewsg.models.logistic(OUTLIER, Y),
    "Student-t covariates": lambda: ewsg.models.logistic(HEAVY, HEAVY_LABELS),
    "d > n": lambda: ewsg.models.logistic(WIDE, WIDE_LABELS),
    "d > n, flat prior": lambda: ewsg.models.logistic(WIDE, WIDE_LABELS, prior_precision=0.0),
    "n = 20": lambda: ewsg.models.logistic(X[:20, :3], Y[:20]),
    "flat prior": lambda: ewsg.models.logistic(X, Y, prior_precision=0.0),
    "0.1 % positives": lambda: ewsg.models.logistic(RARE, RARE_LABELS),
    "columns of scale 10^6 and 10^-6": lambda: ewsg.models.logistic(X * [1e6, 1e-6, 1, 1, 1], Y, prior_precision=0.0),
    "funnel": funnel,
    "two modes": two_modes,
    "prior-only direction": flat_direction,
}


def outcome(target: ewsg.Target) -> str:
    """One line: the verdict and how right it is, or why there is none."""
    try:
        run = ewsg.sample(target, accuracy=0.05, data_passes=2000, progress=False)
    except ewsg.errors.NoPlan as error:
        return f"no plan: {error}"
    reference = ewsg.reference.nuts(target, target.init, num_draws=2000, progress=False)
    draws = ewsg.diagnostics.flatten(run.draws)
    errors = [(draws.mean((0, 1)) - reference.mean) / reference.sd, draws.std((0, 1)) / reference.sd - 1]
    sizes = np.abs(np.concatenate(errors))
    assert run.verdict is not None
    return (
        f"{run.verdict.word}; {np.mean(sizes <= 0.05):.0%} of means and sds within 0.05, largest {sizes.max():.3f}; "
        f"{run.cost.datum_gradients / target.num_data:,.0f} passes (NUTS: ess {reference.ess:,.0f})"
    )


def main() -> None:
    """Prints one line per posterior."""
    for name, make in CASES.items():
        if not sys.argv[1:] or any(word in name for word in sys.argv[1:]):
            began = time.perf_counter()
            print(f"{name}: {outcome(make())} ({time.perf_counter() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
