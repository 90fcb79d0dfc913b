r"""Your own estimator in one file
==============================

An estimator decides which data a step uses. Yours is one class, works with every integrator, and is tested by
enumeration. Here: *strata*. The data are sorted, cut into b slices of equal length, and a step takes one datum of each.
"""

# %%
# The estimator
# -------------
# ``estimate`` answers with a force, ``cost`` counts its gradients, ``noise_factor`` says how noisy it is for the
# diagnostics: relative to one uniform datum, at most 1/b.

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import ewsg
from ewsg import random
from ewsg.interface import Cost, EstimateInfo


class Strata(ewsg.AbstractEstimator):
    """force = (n/b) Σ_k ∇(−V_{i_k}), i_k uniform in the k-th of b equal slices of the data; unbiased."""

    batch_size: int = eqx.field(static=True)

    def estimate(self, key, target, kick, state):
        """One datum from every slice."""
        width = target.num_data // self.batch_size
        indices = jnp.arange(self.batch_size) * width + random.indices(key, width, self.batch_size)
        force = target.force(kick.position, indices)
        return force, state, EstimateInfo(indices, self.cost(target.num_data), {})

    def cost(self, num_data):
        """One gradient per slice."""
        return Cost(self.batch_size)

    def noise_factor(self, num_data):
        """An upper bound: that of as many uniform data."""
        return 1 / self.batch_size

    def check(self, num_data, has_momentum):
        """Slices of unequal length would be biased."""
        if num_data % self.batch_size:
            raise ewsg.errors.InputError(f"Strata: {num_data} data cannot be cut into {self.batch_size} equal slices")


# %%
# A test that can fail
# --------------------
# Six data in three slices: eight equally likely batches. The mean of their forces must be the full force.


def log_likelihood(theta, x):
    """log N(x; μ, σ²), θ = (μ, log σ)."""
    return -0.5 * ((x - theta[0]) * jnp.exp(-theta[1])) ** 2 - theta[1]


few = ewsg.Target(log_likelihood, None, np.array([0.1, 0.4, 0.5, 1.3, 2.0, 7.0], np.float32))
theta = jnp.array([0.7, 0.2])
batches = [jnp.array([i, 2 + j, 4 + k]) for i in (0, 1) for j in (0, 1) for k in (0, 1)]
mean_force = sum(few.force(theta, batch) for batch in batches) / len(batches)
np.testing.assert_allclose(mean_force, few.full_force(theta), rtol=1e-5)

# %%
# And the estimator draws exactly these batches, with equal frequency:

sampler = ewsg.compose(few, Strata(3), ewsg.BAOAB(step_size=1e-3, friction=1.0))
state = sampler.init(jax.random.key(0), theta)
keys = jax.random.split(jax.random.key(1), 4_000)
drawn = np.asarray(jax.vmap(lambda key: sampler.step(key, state)[1].estimate.indices)(keys))
assert {tuple(batch) for batch in drawn} == {tuple(np.asarray(batch)) for batch in batches}
frequency = np.unique(drawn, axis=0, return_counts=True)[1] / len(drawn)
np.testing.assert_allclose(frequency, 1 / 8, atol=4.5 * np.sqrt(1 / 8 * 7 / 8 / len(drawn)))

# %%
# What it buys
# ------------
# 10,000 skewed data, sorted; 20 of them per step. ``sample`` takes the new estimator like any other.

x = np.sort(np.exp(0.6 * np.random.default_rng(0).normal(size=10_000))).astype(np.float32)
target = ewsg.Target(log_likelihood, None, x)
mode = jnp.array([x.mean(), np.log(x.std())])
exact_sd = x.std() / np.sqrt(len(x))  # of the mean μ

step_sizes = [1e-5, 3e-5, 1e-4]
ratios = {}
for name, estimator in {"uniform": ewsg.Uniform(20), "strata": Strata(20)}.items():
    ratios[name] = []
    for step_size in step_sizes:
        move = ewsg.BAOAB(step_size=step_size, friction=100.0)
        run = ewsg.sample(target, estimator, move, init=mode, num_chains=64, num_steps=int(1 / step_size))
        ratios[name].append(float(run.draws[..., 0].std() / exact_sd))
    print(f"{name:8} sd of the mean, relative to the exact one: {np.round(ratios[name], 2)}")

figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
axes.axhline(1, color="0.7", linewidth=1)
for (name, ratio), colour in zip(ratios.items(), ["#8c8c8c", "#1b7f5c"], strict=True):
    axes.plot(step_sizes, ratio, "o-", color=colour, linewidth=2)
    axes.annotate(name, (step_sizes[-1], ratio[-1]), xytext=(8, 0), textcoords="offset points", color=colour)
axes.set(xscale="log", xlabel="step size", ylabel="sd of the posterior mean / exact", xlim=(8e-6, 2e-4))
axes.spines[["top", "right"]].set_visible(False)

# %%
# Check
# -----
# At the largest step uniform minibatches inflate the sd by more than half; strata keep it within 15 %.

assert ratios["uniform"][-1] > 1.5
assert abs(ratios["strata"][-1] - 1) < 0.15
