"""Runs that nobody sampled: draws, stats and settings as a test wants them."""

import numpy as np

from ewsg.result import Run, RunCost
from ewsg.result.predictive import PredictiveVerdict
from ewsg.result.verdict import Verdict

SETTINGS = {
    "estimator": {"component": "Uniform", "$class": "ewsg:Uniform", "batch_size": 10, "replace": True},
    "integrator": {"component": "Underdamped", "$class": "ewsg:Underdamped", "step_size": 0.01, "friction": 5.0},
    "collect": {"component": "Draws", "$class": "ewsg:Draws", "function": None},
    "coordinates": None,
    "temperature": 1.0,
    "num_chains": 4,
    "num_data": 100,
    "dimension": 2,
    "num_steps": 1000,
    "discard": 500,
    "thin": 2,
    "seed": 7,
    "rng": "fast",
    "versions": {"python": "3.11.7", "ewsg": "0.1.0", "jax": "0.10.1"},
}
REACHED = Verdict("reached", 0.05, 0.03, 0.02, 0.01, 0.93, 1.21, 2.5, 3e-4)
PREDICTED = PredictiveVerdict("budget", 0.1, 0.2, 1.2, 1.01, 0.97, 0.02, 0.0, 300.0)


def made_up(draws, settings=None, status="ok", temperature=1.0, collected=()):
    """A run of four chains with 200 draws each; `status` is that of the last chain: if it failed, hot and then NaN.

    The momentum has temperature T throughout, the position is 10 % hotter in the second half, and the noise ratio 0.25.
    """
    rng = np.random.default_rng(1)
    kinetic = temperature * (1 + 0.01 * rng.normal(size=(4, 200)))
    if status != "ok":
        kinetic[3] = 1e6
        draws = {name: np.concatenate([values[:3], np.full_like(values[3:], np.nan)]) for name, values in draws.items()}
    stats = {
        "kinetic_temperature": kinetic,
        "configurational_temperature": kinetic * np.where(np.arange(200) < 100, 1.0, 1.1),
        "noise_ratio": np.full((4, 200), 0.25),
    }
    statuses = np.array(["ok", "ok", "ok", status])
    settings = SETTINGS | {"temperature": temperature} | (settings or {})
    return Run(draws, stats, statuses, RunCost(123456, 0, 2.0, 1.0, 0.5), settings, collected)


def normal(*shape, seed=0, draws=200):
    """Independent standard normal draws of four chains."""
    return np.random.default_rng(seed).normal(size=(4, draws, *shape)).astype(np.float32)
