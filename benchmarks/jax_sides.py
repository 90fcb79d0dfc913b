"""The sides that run on JAX: ours, BlackJAX, and an expert's plain `lax.scan`."""

import functools
from collections.abc import Callable

import blackjax.sgmcmc.diffusions as diffusions
import blackjax.sgmcmc.gradients as gradients
import jax
import jax.numpy as jnp
import numpy as np
from sides import Runner
from tasks import PRECISION, Task, data, weights

import ewsg


def _log_likelihood(problem: str) -> Callable:
    """ℓ(θ, datum), as a user writes it."""
    if problem == "gaussian":
        return lambda theta, centre: -0.5 * jnp.sum((theta - centre) ** 2)
    if problem == "logistic":
        return lambda theta, row: jax.nn.log_sigmoid(jnp.dot(row, theta))
    return lambda theta, datum: jax.nn.log_softmax(_network(theta, datum[0]))[datum[1]]


def _network(theta: dict, image: jax.Array) -> jax.Array:
    """The logits of one image, or of a batch."""
    if "k1" not in theta:
        return jax.nn.relu(image @ theta["w1"] + theta["b1"]) @ theta["w2"] + theta["b2"]
    maps = image if image.ndim == 4 else image[None]
    for name in ("k1", "k2"):
        maps = jax.nn.relu(jax.lax.conv(maps, theta[name], (1, 1), "VALID"))
        maps = jax.lax.reduce_window(maps, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    hidden = jax.nn.relu(maps.reshape(len(maps), -1) @ theta["w1"] + theta["b1"])
    logits = jax.nn.relu(hidden @ theta["w2"] + theta["b2"]) @ theta["w3"] + theta["b3"]
    return logits if image.ndim == 4 else logits[0]


def _log_prior(problem: str) -> Callable:
    precision = PRECISION[problem]
    if precision == 0:
        return lambda theta: 0.0
    return lambda theta: -0.5 * precision * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(theta))


def _start(problem: str, rows) -> dict | jax.Array:
    if problem in ("mlp", "cnn"):
        return jax.tree.map(jnp.asarray, weights(problem))
    return jnp.zeros(rows.shape[1])


def _as_rows(positions: dict | jax.Array) -> np.ndarray:
    leaves = [np.asarray(leaf).reshape(leaf.shape[0], -1) for leaf in jax.tree.leaves(positions)]
    return np.concatenate(leaves, axis=1)


def ours(task: Task, closed_form: bool = False, devices: int = 1) -> Runner:
    """`ewsg.sample` with a likelihood of one datum (or, for comparison, the model's closed form)."""
    likelihood = ewsg.models.Logistic() if closed_form else _log_likelihood(task.problem)
    rows = data(task.problem)
    target = ewsg.Target(likelihood, _log_prior(task.problem) if PRECISION[task.problem] else None, rows)
    half = task.batch // 2
    estimator = {
        "uniform": lambda: ewsg.Uniform(task.batch),
        "ewsg": lambda: ewsg.Exponential(half, 1),
        "paired": lambda: ewsg.Paired(half),
    }[task.method]()
    if task.friction is None:
        integrator = ewsg.Overdamped(task.step_size)
    else:
        integrator = ewsg.Underdamped(task.step_size, task.friction)
    start = _start(task.problem, rows)

    def run(seed: int, steps: int = task.steps) -> np.ndarray:
        found = ewsg.sample(
            target,
            estimator,
            integrator,
            init=start,
            num_chains=task.chains,
            num_steps=steps,
            discard=steps - 1,
            thin=1,
            seed=seed,
            progress=False,
            devices=devices,
        )
        return _as_rows(jax.tree.map(lambda leaf: leaf[:, -1], found.draws))

    return run


def blackjax(task: Task) -> Runner:
    """BlackJAX's gradient estimator and diffusion; its user draws the minibatches and carries the momentum."""
    rows = jax.tree.map(jnp.asarray, data(task.problem))
    n = jax.tree.leaves(rows)[0].shape[0]
    gradient = gradients.grad_estimator(_log_prior(task.problem), _log_likelihood(task.problem), n)
    start = _start(task.problem, rows)
    if task.friction is None:
        overdamped = diffusions.overdamped_langevin()
        move = lambda key, q, p, g: (overdamped(key, q, g, task.step_size), p)  # noqa: E731
    else:
        move = functools.partial(_moved, diffusions.sghmc(task.friction, 0), task.step_size)

    def chain(key, q, p):
        key_batch, key_noise = jax.random.split(key)
        indices = jax.random.randint(key_batch, (task.batch,), 0, n)
        return move(key_noise, q, p, gradient(q, jax.tree.map(lambda leaf: leaf[indices], rows)))

    return _scanned(task, start, jax.vmap(chain))


def _moved(diffusion, step_size, key, q, p, g):
    return diffusion(key, q, p, g, step_size)


def plain(task: Task, loop: Callable | None = None) -> Runner:
    """A loop as an expert writes it: one key per step for all chains, one gather, a batched closed form."""
    rows = jax.tree.map(jnp.asarray, data(task.problem))
    n = jax.tree.leaves(rows)[0].shape[0]
    h, gamma, prior = task.step_size, task.friction, PRECISION[task.problem]
    start = _start(task.problem, rows)

    def force(theta, indices):
        if task.problem == "gaussian":
            return n * (rows[indices[:, 0]] - theta)
        if task.problem == "logistic":
            batch = rows[indices]
            slopes = n / task.batch * jax.nn.sigmoid(-jnp.einsum("cbd,cd->cb", batch, theta))
            return jnp.einsum("cb,cbd->cd", slopes, batch) - prior * theta
        images, labels = (leaf[indices] for leaf in rows)

        def loss(theta, images, labels):
            logits = jax.nn.log_softmax(_network(theta, images))
            likelihood = jnp.mean(jnp.take_along_axis(logits, labels[:, None], 1))
            return n * likelihood + _log_prior(task.problem)(theta)

        return jax.vmap(jax.grad(loss))(theta, images, labels)

    def step(keys, q, p):
        key_batch, key_noise = jax.random.split(keys[0])
        g = force(q, jax.random.randint(key_batch, (task.chains, task.batch), 0, n))
        leaves, structure = jax.tree.flatten(q)
        key_leaves = jax.random.split(key_noise, len(leaves))
        xi = structure.unflatten([jax.random.normal(k, leaf.shape) for k, leaf in zip(key_leaves, leaves, strict=True)])
        if gamma is None:
            return jax.tree.map(lambda q, g, x: q + h * g + (2 * h) ** 0.5 * x, q, g, xi), p
        moved = jax.tree.map(lambda q, p: q + h * p, q, p)
        return moved, jax.tree.map(lambda p, g, x: p + h * (g - gamma * p) + (2 * gamma * h) ** 0.5 * x, p, g, xi)

    return (loop or _scanned)(task, start, step, keys_per_step=1)


def stepwise(task: Task) -> Runner:
    """The same for a network with convolutions: a compiled step in a Python loop."""
    return plain(task, loop=_stepped)


def _stepped(task: Task, start, step: Callable, keys_per_step: int) -> Runner:
    @jax.jit
    def move(key, carry):
        return step(jax.random.split(key, keys_per_step), *carry)

    def run(seed: int) -> np.ndarray:
        key_momentum, key_steps = jax.random.split(jax.random.key(seed))
        q = jax.tree.map(lambda leaf: leaf[None], start)
        carry = q, jax.tree.map(lambda leaf: jax.random.normal(key_momentum, leaf.shape), q)
        for key in jax.random.split(key_steps, task.steps):
            carry = move(key, carry)
        return _as_rows(jax.block_until_ready(carry[0]))

    return run


def _scanned(task: Task, start, step: Callable, keys_per_step: int | None = None) -> Runner:
    count = keys_per_step or task.chains

    @jax.jit
    def scan(key):
        key_momentum, key_steps = jax.random.split(key)
        q = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (task.chains, *leaf.shape)), start)
        p = jax.tree.map(lambda leaf: jax.random.normal(key_momentum, leaf.shape), q)
        body = lambda carry, key: (step(jax.random.split(key, count), *carry), None)  # noqa: E731
        return jax.lax.scan(body, (q, p), jax.random.split(key_steps, task.steps))[0][0]

    return lambda seed: _as_rows(jax.block_until_ready(scan(jax.random.key(seed))))
