"""The sides that run on torch, in an environment of its own: posteriors' SGHMC, and a loop written by hand.

python -m venv benchmarks/.venv-torch && benchmarks/.venv-torch/bin/pip install torch==2.13.0 posteriors numpy
"""

import math
import warnings

import numpy as np
import torch
from tasks import PRECISION, Task, data, weights

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import posteriors as library

torch.set_num_threads(1)


def posteriors(task: Task):
    """`posteriors.sgmcmc.sghmc` on minibatches drawn by its user, one chain after the other."""
    rows, log_posterior = _posterior(task)
    transform = library.sgmcmc.sghmc.build(log_posterior, lr=task.step_size, alpha=task.friction)

    def chain() -> dict | torch.Tensor:
        state = transform.init(_start(task, rows))
        for _ in range(task.steps):
            state = transform.update(state, _drawn(rows, task.batch))[0]
        return state.params

    return _chains(task, chain)


def by_hand(task: Task):
    """The same in plain torch: autograd and updates in place."""
    rows, log_posterior = _posterior(task)
    h, noise = task.step_size, math.sqrt(2 * task.friction * task.step_size)

    def chain() -> dict | torch.Tensor:
        start = _start(task, rows)
        theta = [leaf.requires_grad_() for leaf in (start.values() if isinstance(start, dict) else [start])]
        momenta = [torch.randn_like(leaf) for leaf in theta]
        for _ in range(task.steps):
            value = log_posterior(start, _drawn(rows, task.batch))[0]
            gradients = torch.autograd.grad(value, theta)
            with torch.no_grad():
                for leaf, momentum, gradient in zip(theta, momenta, gradients, strict=True):
                    leaf.add_(momentum, alpha=h)
                    momentum.mul_(1 - h * task.friction).add_(gradient, alpha=h)
                    momentum.add_(torch.randn_like(momentum), alpha=noise)
        return start

    return _chains(task, chain)


def _posterior(task: Task):
    """Data as tensors, and the log posterior of a minibatch."""
    arrays = data(task.problem)
    rows = [torch.from_numpy(array) for array in (arrays if isinstance(arrays, tuple) else (arrays,))]
    n, prior = len(rows[0]), PRECISION[task.problem]

    def log_posterior(theta, batch):
        if task.problem == "logistic":
            values, squares = torch.nn.functional.logsigmoid(batch[0] @ theta), (theta**2).sum()
        else:
            logits = _network(theta, batch[0])
            values = -torch.nn.functional.cross_entropy(logits, batch[1].long(), reduction="none")
            squares = sum((leaf**2).sum() for leaf in theta.values())
        return n * values.mean() - 0.5 * prior * squares, torch.tensor([])

    return rows, log_posterior


def _network(theta: dict, images: torch.Tensor) -> torch.Tensor:
    if "k1" not in theta:
        return torch.relu(images @ theta["w1"] + theta["b1"]) @ theta["w2"] + theta["b2"]
    maps = images
    for name in ("k1", "k2"):
        maps = torch.nn.functional.max_pool2d(torch.relu(torch.nn.functional.conv2d(maps, theta[name])), 2)
    hidden = torch.relu(maps.flatten(1) @ theta["w1"] + theta["b1"])
    return torch.relu(hidden @ theta["w2"] + theta["b2"]) @ theta["w3"] + theta["b3"]


def _drawn(rows: list, batch: int) -> list:
    indices = torch.randint(len(rows[0]), (batch,))
    return [array[indices] for array in rows]


def _start(task: Task, rows: list) -> dict | torch.Tensor:
    if task.problem == "logistic":
        return torch.zeros(rows[0].shape[1])
    return {name: torch.from_numpy(array.copy()) for name, array in weights(task.problem).items()}


def _chains(task: Task, chain):
    def run(seed: int) -> np.ndarray:
        torch.manual_seed(seed)
        return np.stack([_flat(chain()) for _ in range(task.chains)])

    return run


def _flat(theta: dict | torch.Tensor) -> np.ndarray:
    leaves = [theta[name] for name in sorted(theta)] if isinstance(theta, dict) else [theta]
    return np.concatenate([leaf.detach().numpy().ravel() for leaf in leaves])
