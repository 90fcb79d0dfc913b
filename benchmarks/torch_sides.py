"""The side that runs on torch, in an environment of its own: posteriors' SGHMC, one chain after the other.

python -m venv benchmarks/.venv-torch && benchmarks/.venv-torch/bin/pip install torch==2.13.0 posteriors numpy
"""

import math

import numpy as np
import posteriors as library
import torch
from tasks import PRECISION, Task, data

torch.set_num_threads(1)


def posteriors(task: Task):
    """`posteriors.sgmcmc.sghmc` on minibatches drawn by its user."""
    arrays = data(task.problem)
    rows = [torch.from_numpy(array) for array in (arrays if isinstance(arrays, tuple) else (arrays,))]
    n, prior = rows[0].shape[0], PRECISION[task.problem]

    def log_posterior(theta, batch):
        values = torch.nn.functional.logsigmoid(batch[0] @ theta) if task.problem == "logistic" else _mlp(theta, batch)
        squares = sum((leaf**2).sum() for leaf in (theta.values() if isinstance(theta, dict) else [theta]))
        return n * values.mean() - 0.5 * prior * squares, torch.tensor([])

    transform = library.sgmcmc.sghmc.build(log_posterior, lr=task.step_size, alpha=task.friction)

    def chain():
        theta = _start(rows) if task.problem == "mlp" else torch.zeros(rows[0].shape[1])
        state = transform.init(theta)
        for _ in range(task.steps):
            indices = torch.randint(n, (task.batch,))
            state = transform.update(state, [array[indices] for array in rows])[0]
        leaves = state.params.values() if isinstance(state.params, dict) else [state.params]
        return np.concatenate([leaf.detach().numpy().ravel() for leaf in leaves])

    def run(seed: int) -> np.ndarray:
        torch.manual_seed(seed)
        return np.stack([chain() for _ in range(task.chains)])

    return run


def _mlp(theta: dict, batch: list) -> torch.Tensor:
    hidden = torch.relu(batch[0] @ theta["w1"] + theta["b1"])
    return -torch.nn.functional.cross_entropy(hidden @ theta["w2"] + theta["b2"], batch[1].long(), reduction="none")


def _start(rows: list) -> dict:
    width, hidden, classes = rows[0].shape[1], 100, 10
    return {
        "b1": torch.zeros(hidden),
        "b2": torch.zeros(classes),
        "w1": torch.randn(width, hidden) / math.sqrt(400),
        "w2": torch.randn(hidden, classes) / 10,
    }
