"""The Covertype regression of the paper: its data in three preparations, and a reference posterior."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .... import datasets, models
from ....estimators import Full
from ....integrators import BAOAB
from ....recipes import Method
from ....result.run import Run
from ....target.mode import curvature, find_mode
from ....target.target import Target
from ..experiment import Work

NUM_TRAIN, NUM_ROWS = 464_809, 581_012
PRECISION = 10.0
PREPARATIONS = ("unit rows", "standardised", "min-max")
_CLOSE = 1e-9


class Rows(NamedTuple):
    """Training and test rows with labels folded in, z = (2y − 1) x, and the regression on the former."""

    target: Target
    train: np.ndarray
    test: np.ndarray


def load(preparation: str = "unit rows", share: float = 1.0) -> Rows:
    """Class 2 against the rest, no intercept; the paper's 464,809 training rows, or a share of them.

    Args:
        preparation: of the ten continuous columns: standardised, and then every row scaled to length 1 ("unit rows");
            standardised; or scaled to [0, 1] ("min-max").
        share: of training and of test rows.
    """
    table = datasets.load("covertype")
    train, test = datasets.train_test_split(NUM_ROWS, NUM_TRAIN / NUM_ROWS, 0)
    chosen = [rows[: round(share * len(rows))] for rows in (train, test)]
    if preparation == "min-max":
        features = table.features.copy()
        low, high = features[:, :10].min(0), features[:, :10].max(0)
        features[:, :10] = (features[:, :10] - low) / (high - low)
    else:
        features = datasets.standardize(table.features, columns=range(10))[0]
    if preparation == "unit rows":
        features /= np.linalg.norm(features, axis=1, keepdims=True)
    labels = table.labels == 2
    signed = [features[rows] * np.where(labels[rows], 1, -1).astype(np.float32)[:, None] for rows in chosen]
    target = models.logistic(features[chosen[0]], labels[chosen[0]], prior_precision=PRECISION)
    return Rows(target, *signed)


class Laplace(NamedTuple):
    """The mode, and a Cholesky factor L of the inverse Hessian there."""

    mode: np.ndarray
    root: np.ndarray


def laplace(rows: np.ndarray) -> Laplace:
    """Laplace's approximation of V(θ) = 5‖θ‖² + Σ log(1 + exp(−θ·z)), in double precision."""
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        target = models.logistic(rows, np.ones(len(rows)), prior_precision=PRECISION)
        found = find_mode(target, jnp.zeros(rows.shape[1]), method="newton", tolerance=_CLOSE)
        hessian = np.asarray(curvature(target, found.position))
    return Laplace(np.asarray(found.position), np.linalg.cholesky(np.linalg.inv(hessian)))


def whitened_log_likelihood(w: Float[Array, " d"], datum: tuple[Array, Array]) -> Float[Array, ""]:
    """log σ(θ·z) at θ = mode + L w, for the datum (Lᵀz, mode·z)."""
    row, offset = datum
    return jax.nn.log_sigmoid(offset + row @ w)


def reference(work: Work, rows: Rows) -> dict[str, list[float]]:
    """Posterior mean and sd: a long full-gradient run (BAOAB) in the coordinates in which Laplace's sd are 1."""

    def compute() -> dict[str, list[float]]:
        found = laplace(rows.train)
        return {"mode": found.mode.tolist(), "root": found.root.tolist()}

    stored = work.part("Laplace", {"rows": len(rows.train)}, compute)
    mode, root = np.array(stored["mode"]), np.array(stored["root"])
    factor, centre = jnp.asarray(root, jnp.float32), jnp.asarray(mode, jnp.float32)
    data = (rows.train @ root.astype(np.float32), (rows.train @ mode).astype(np.float32))
    target = Target(
        whitened_log_likelihood, lambda w: -0.5 * PRECISION * jnp.sum(jnp.square(centre + factor @ w)), data
    )

    def measure(run: Run) -> dict[str, list[float]]:
        draws = np.asarray(run.good_draws(), np.float64)
        places = mode + draws.reshape(-1, len(mode)) @ root.T
        return {"mean": places.mean(0).tolist(), "sd": places.std(0, ddof=1).tolist()}

    part = work.sample(
        "reference",
        target,
        Method(Full(), BAOAB(0.5, 2.0)),
        measure,
        init=lambda key: jax.random.normal(key, (len(mode),)),
        num_chains=work["reference_chains"],
        num_steps=work["reference_steps"],
        discard=0.1,
        thin=1,
    )
    return part["value"] | {"mode": mode.tolist(), "laplace_sd": np.sqrt(np.diag(root @ root.T)).tolist()}
