"""Minibatches with a share of every cluster of the data: the stratified gradients of CP-SGHMC."""

import dataclasses
import warnings
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .. import _random
from .._core.component import check_count
from .._core.optional import require
from .._core.settings import plain
from .._core.types import Indices, Key, Position, Scalar
from ..errors import InputError
from ..interface import Cost, EstimateInfo, Kick
from ..target.target import Target
from .base import PROBE_DATA, AbstractEstimator, probe_direction


class Strata(NamedTuple):
    """The row numbers sorted by stratum; where each of the k strata begins, its size, and the weight of one draw."""

    order: Int[Array, " n"]
    first: Int[Array, " k"]
    sizes: Int[Array, " k"]
    weights: Float[Array, " k"]


def _as_array(values: Any) -> np.ndarray | None:
    return None if values is None else np.asarray(values)


class Clustered(AbstractEstimator):
    r"""A fixed number of data from every cluster, as in CP-SGHMC (Fu and Zhang 2017).

    force = Σ_k (n_k/m) Σ_{j=1..m} ∇ℓ_{i_kj} + ∇ log π,   i_kj uniform in cluster k, with replacement.

    Unbiased for any clusters. Of the covariance of a uniform minibatch only the part within clusters remains,
    Σ_k (n_k²/m) Cov_k(∇ℓ): clusters help to the extent that they predict the gradient. With one cluster this is
    `Uniform(m, replace=True)`, draw for draw. Costs m datum gradients per step for every cluster that is not empty.

    The clusters are found once, before the first step, by k-means (scikit-learn, k-means++ seeds, on one thread so that
    the result can be reproduced). This counts as no datum gradients. Resuming a saved run repeats it.

    Args:
        num_clusters: the number of clusters that k-means looks for; not used with `labels`.
        draws_per_cluster: m.
        labels: the cluster of each datum as a whole number, in place of k-means.
        features: the input of k-means, an array with one row per datum; by default all floating-point arrays of the
            data side by side (for the models of `ewsg.models` that includes the responses).
        seed: the seed of k-means.
        strata: filled in by `prepare`.
    """

    num_clusters: int = eqx.field(static=True, default=10, converter=plain)
    draws_per_cluster: int = eqx.field(static=True, default=1, converter=plain)
    labels: np.ndarray | None = eqx.field(default=None, converter=_as_array)
    features: np.ndarray | None = eqx.field(default=None, converter=_as_array)
    seed: int = eqx.field(static=True, default=0, converter=plain)
    strata: Strata | None = None

    def __check_init__(self):
        check_count("Clustered", "num_clusters", self.num_clusters, 1)
        check_count("Clustered", "draws_per_cluster", self.draws_per_cluster, 1)
        check_count("Clustered", "seed", self.seed, 0)
        if self.labels is not None and self.features is not None:
            raise InputError("Clustered takes labels= or features=, not both: labels leave nothing to cluster")
        if self.labels is not None and not np.issubdtype(self.labels.dtype, np.integer):
            raise InputError(f"Clustered: labels must be whole numbers, one per datum, not {self.labels.dtype}")

    def check(self, num_data: int, has_momentum: bool) -> None:
        del has_momentum
        for name, values in (("labels", self.labels), ("features", self.features)):
            if values is not None and values.shape[:1] != (num_data,):
                raise InputError(
                    f"Clustered: {name} has shape {values.shape} for {num_data} data: give one row per datum"
                )
        if self.labels is not None and self.labels.ndim != 1:
            raise InputError(f"Clustered: labels has shape {self.labels.shape}: give one whole number per datum")
        if self.labels is None and self.strata is None and self.num_clusters > num_data:
            raise InputError(
                f"Clustered: num_clusters {self.num_clusters} is larger than the number of data {num_data}: "
                "take fewer clusters"
            )

    def prepare(self, target: Target) -> tuple["Clustered", Cost]:
        labels = self.labels
        if labels is None:
            features = _floating_rows(target) if self.features is None else self.features
            labels = _cluster(features.reshape(target.num_data, -1), self.num_clusters, self.seed)
        strata = _stratify(labels, self.draws_per_cluster)
        return dataclasses.replace(self, labels=None, features=None, strata=strata), Cost(0)

    def estimate(self, key: Key, target: Target, kick: Kick, state: Any) -> tuple[Position, Any, EstimateInfo]:
        indices = self._draw(_random.fold(key, 0), self.draws_per_cluster)
        weights = jnp.repeat(self._strata().weights, self.draws_per_cluster)
        force = target.weighted_force(kick.position, indices, weights)
        return force, state, EstimateInfo(indices, self.cost(target.num_data), {})

    def cost(self, num_data: int) -> Cost:
        return Cost(self._num_strata() * self.draws_per_cluster)

    def noise_factor(self, num_data: int) -> float:
        """1/m, an upper bound that one cluster attains; `noise_trace` takes the clusters into account."""
        return 1 / self.draws_per_cluster

    def noise_trace(
        self, key: Key, target: Target, position: Position, state: Any, metric: Position | None = None
    ) -> Scalar:
        """Σ_k (n_k²/m) Tr √P Cov_k(∇ℓ) √P, from the variance of u·∇ℓ_i, u ~ N(0, P), over a few data per cluster."""
        del state
        sizes = self._strata().sizes
        key_direction, key_data = _random.split(key)
        direction = probe_direction(key_direction, position, metric)
        draws = self._probe_draws()
        along = target.directional(position, self._draw(key_data, draws), direction)
        within = jnp.var(along.reshape(-1, draws), axis=1, ddof=1)
        shares = sizes.astype(within.dtype) / target.num_data
        return jnp.dot(shares**2, within) / self.draws_per_cluster

    def probe_cost(self, num_data: int) -> int:
        return self._num_strata() * self._probe_draws()

    def _probe_draws(self) -> int:
        """The number of data of each cluster that `noise_trace` evaluates."""
        return max(2, PROBE_DATA // self._num_strata())

    def _num_strata(self) -> int:
        if self.strata is not None:
            return self.strata.sizes.shape[0]
        return self.num_clusters if self.labels is None else len(np.unique(self.labels))

    def _draw(self, key: Key, draws: int) -> Indices:
        """`draws` data of each cluster in turn."""
        order, first, sizes, _ = self._strata()
        places = _random.indices(key, jnp.repeat(sizes, draws), draws * sizes.shape[0])
        return order.at[jnp.repeat(first, draws) + places].get(mode="promise_in_bounds")

    def _strata(self) -> Strata:
        if self.strata is None:
            raise InputError("Clustered is not prepared: use ewsg.compose, or estimator.prepare(target) first")
        return self.strata


def _stratify(labels: np.ndarray, draws: int) -> Strata:
    _, members, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    order = np.argsort(members, kind="stable")
    return Strata(
        order=jnp.asarray(order, jnp.int32),
        first=jnp.asarray(np.cumsum(sizes) - sizes, jnp.int32),
        sizes=jnp.asarray(sizes, jnp.int32),
        weights=jnp.asarray(sizes / (len(labels) * draws)),
    )


def _floating_rows(target: Target) -> np.ndarray:
    leaves = [leaf for leaf in jax.tree.leaves(target.data.arrays) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    if not leaves:
        raise InputError("Clustered: the data have no floating-point array to cluster by: give features= or labels=")
    return np.concatenate([np.asarray(leaf, np.float32).reshape(target.num_data, -1) for leaf in leaves], axis=1)


def _cluster(features: np.ndarray, num_clusters: int, seed: int) -> np.ndarray:
    """The k-means label of each row."""
    threadpoolctl = require("threadpoolctl", extra="cluster")
    KMeans = require("sklearn.cluster", extra="cluster").KMeans
    ConvergenceWarning = require("sklearn.exceptions", extra="cluster").ConvergenceWarning
    if features.dtype.kind not in "biuf" or not np.all(np.isfinite(features)):
        raise InputError("Clustered: features must be finite numbers: encode categories, drop or impute missing values")
    with threadpoolctl.threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters: the rest stay empty
        return KMeans(num_clusters, random_state=seed).fit_predict(features)
