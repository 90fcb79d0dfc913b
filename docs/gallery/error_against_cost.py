r"""Error against cost: five ways to choose minibatches
===================================================

Five methods get the same budget of datum gradients on one skewed posterior. Some are wrong by an amount that no budget
removes; the others keep improving.
"""

# %%
# The posterior
# -------------
# A normal model with unknown mean and sd, fitted to 10,007 log-normal data: two parameters, and gradients of which a
# few are very large. ``ewsg.problems`` has the answer, from a long run of NUTS.

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import ewsg

problem, answer = ewsg.problems.load("skewed"), ewsg.problems.answer("skewed")
start = jnp.asarray(answer.start)
sds = np.sqrt(np.diag(answer.cov))

# %%
# The methods
# -----------
# Each may look at 100 data per step (``Exponential`` at two batches of 50, ``ControlVariate`` at 50 data in two
# places). The step size and the friction are the same for all.

settings = {"step_size": 1e-4, "friction": 100.0}
methods = {
    "uniform (SGHMC)": (ewsg.Uniform(100), ewsg.BAOAB(**settings)),
    "EWSG, M = 1": (ewsg.Exponential(50, chain_length=1), ewsg.Underdamped(**settings)),
    "reshuffled": (ewsg.Reshuffled(100), ewsg.BAOAB(**settings)),
    "paired, select": (ewsg.Paired(50, rule="select"), ewsg.BAOAB(**settings)),
    "control variate": (ewsg.ControlVariate(ewsg.Uniform(50), anchor=start), ewsg.BAOAB(**settings)),
}

# %%
# 200 passes over the data for each of 32 chains. The error of a chain after c passes is that of its own means and sds
# of the draws up to there, in posterior standard deviations; we show the root mean square over chains and parameters.

PASSES = 200
passes = np.geomspace(5, PASSES, 20)


def errors(draws):
    """The error after each number of passes, from draws at equal distances."""
    found = []
    for share in passes / PASSES:
        part = draws[:, : int(share * draws.shape[1])]
        wrong = np.concatenate([(part.mean(1) - answer.mean) / sds, part.std(1) / sds - 1], axis=1)
        found.append(np.sqrt(np.mean(wrong**2)))
    return np.array(found)


curves = {}
for name, method in methods.items():
    run = ewsg.sample(problem.target, *method, init=start, num_chains=32, data_passes=PASSES, discard=0)
    curves[name] = errors(np.asarray(run.draws, np.float64))
    print(f"{name:16} error after {run.cost.data_passes:.0f} passes: {curves[name][-1]:.3f} posterior sd")

# %%
# The figure
# ----------
# A line that falls with slope −½ is Monte-Carlo error, which a longer run removes. A line that has become flat is bias:
# the chain is too hot, and more data will not help. EWSG's weights favour large gradients, which here moves the mean as
# well.

figure, axes = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
colours = ["#8c8c8c", "#c0392b", "#d98a1e", "#2c6fbb", "#1b7f5c"]
for (name, curve), colour in zip(curves.items(), colours, strict=True):
    axes.plot(passes, curve, color=colour, linewidth=2)
    axes.annotate(name, (PASSES, curve[-1]), xytext=(6, 0), textcoords="offset points", va="center", color=colour)
axes.plot(passes, 0.5 * np.sqrt(5 / passes), color="0.6", linestyle=":", linewidth=1)
axes.annotate("slope −½", (10, 0.5 * np.sqrt(5 / 10)), color="0.4", xytext=(0, -14), textcoords="offset points")
axes.set(xscale="log", yscale="log", xlabel="passes over the data", ylabel="error of means and sds (posterior sd)")
axes.set(xticks=[5, 10, 20, 50, 100, 200], xticklabels=["5", "10", "20", "50", "100", "200"])
axes.set(yticks=[0.1, 0.2, 0.5, 1, 2], yticklabels=["0.1", "0.2", "0.5", "1", "2"], xlim=(5, 480))
axes.minorticks_off()
axes.spines[["top", "right"]].set_visible(False)

# %%
# Check
# -----
# Paired selection and control variates end below 0.15 posterior sd and are still improving; uniform minibatches are
# stuck above 0.5. Control variates are the best choice where a mode is known and the posterior is nearly Gaussian, as
# here.

assert curves["paired, select"][-1] < 0.15
assert curves["control variate"][-1] < 0.1
assert curves["uniform (SGHMC)"][-1] > 0.5
assert curves["uniform (SGHMC)"][-1] > 0.8 * curves["uniform (SGHMC)"][len(passes) // 2]
