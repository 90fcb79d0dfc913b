r"""Is it hot?
==========

A minibatch chain that is too hot has a good R-hat and a *better* effective sample size than a correct one. The
temperatures, which every run of ``ewsg`` reports, are what gives it away.

We sample one logistic regression three times with uniform minibatches. Only the step size differs.
"""

# %%
# The posterior
# -------------
# 2,000 data, five coefficients. NUTS, which uses all data and is exact, gives the reference.

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import ewsg

rng = np.random.default_rng(0)
x = ewsg.models.with_intercept(rng.normal(size=(2_000, 4)))
y = x @ np.array([-0.5, 1.0, -1.0, 0.5, 0.2]) + rng.logistic(size=2_000) > 0
target = ewsg.models.logistic(x, y)
mode = ewsg.find_mode(target, jnp.zeros(5)).position

exact = ewsg.reference.nuts(target, mode, num_warmup=300, num_draws=1_000)

# %%
# Three step sizes
# ----------------
# Equal batches, equal friction, 24,000 to 240,000 steps.

step_sizes = {0.0002: 240_000, 0.002: 60_000, 0.01: 24_000}
runs = {}
for step_size, num_steps in step_sizes.items():
    move = ewsg.BAOAB(step_size=step_size, friction=20.0)
    runs[step_size] = ewsg.sample(target, ewsg.Uniform(50), move, init=mode, num_steps=num_steps)

summaries = {step_size: run.summary() for step_size, run in runs.items()}
print("step size   R-hat    ESS   kinetic T   configurational T   variance / exact")
variances = {}
for step_size, summary in summaries.items():
    variances[step_size] = float(np.mean(runs[step_size].draws.var((0, 1)) / exact.sd**2))
    print(
        f"{step_size:<9g} {summary.parameters['rhat'].max():7.3f} {summary.parameters['ess'].min():6.0f}"
        f" {summary.diagnostics['kinetic_temperature']:9.2f}"
        f" {summary.diagnostics['configurational_temperature']:15.2f} {variances[step_size]:19.2f}"
    )

# %%
# R-hat and ESS compare chains with each other, and all chains are wrong in the same way. The temperatures compare them
# with the target: both are 1 if all is well, and they exceed 1 by about as much as the posterior variance is too large.
# The summary says so, and what to do:

for warning in summaries[0.01].warnings:
    print(warning)

# %%
# The figure
# ----------

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
colours = {0.0002: "#1b7f5c", 0.002: "#d98a1e", 0.01: "#c0392b"}
bins = np.linspace(0.3, 1.7, 90)
left.hist(np.ravel(exact.draws[..., 1]), bins, density=True, color="0.85", label="NUTS, exact")
for step_size, run in runs.items():
    height, edges = np.histogram(np.ravel(run.draws[..., 1]), bins, density=True)
    left.stairs(height, edges, color=colours[step_size], linewidth=1.8, label=f"step size {step_size:g}")
left.set(xlabel="first coefficient", ylabel="posterior density", xlim=(0.3, 1.7))
left.legend(frameon=False)

shown = list(runs)
right.axhline(1, color="0.7", linewidth=1)
right.plot(shown, list(variances.values()), "o-", color="0.2", label="posterior variance / exact")
temperatures = [summaries[h].diagnostics["configurational_temperature"] for h in shown]
right.plot(shown, temperatures, "s--", color="#c0392b", label="temperature")
right.plot(shown, [summaries[h].parameters["rhat"].max() for h in shown], "^:", color="#2c6fbb", label="R-hat")
right.set(xscale="log", yscale="log", xlabel="step size", yticks=[1, 2, 5], yticklabels=["1", "2", "5"])
right.minorticks_off()
right.legend(frameon=False)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)

# %%
# Check
# -----
# R-hat finds nothing in any run; the temperature predicts the error of every variance to a tenth; the smallest step is
# right to 15 %.

assert all(summary.parameters["rhat"].max() < 1.02 for summary in summaries.values())
np.testing.assert_allclose(temperatures, list(variances.values()), rtol=0.1)
assert variances[0.01] > 2
assert abs(variances[0.0002] - 1) < 0.15
