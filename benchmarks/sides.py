"""The sides without JAX: C, NumPy and bare matrix products.

A side turns a task into a function of a seed that returns the last positions.
"""

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tasks import PRECISION, Task, data

HERE = Path(__file__).parent
Runner = Callable[[int], np.ndarray]


def c(task: Task) -> Runner:
    """The limit: C, compiled by gcc for this machine."""
    library = HERE / "build" / "speed.so"
    library.parent.mkdir(exist_ok=True)
    flags = ["-O3", "-march=native", "-mprefer-vector-width=512", "-ffast-math", "-fPIC", "-shared"]
    subprocess.run(["gcc", *flags, str(HERE / "speed.c"), "-o", str(library), "-lm"], check=True)
    program = ctypes.CDLL(str(library))
    rows = data(task.problem)
    momentum, friction = int(task.friction is not None), ctypes.c_float(task.friction or 0.0)
    size, step = rows.shape, ctypes.c_float(task.step_size)
    lanes = -(-task.chains // 64) * 64 if task.problem == "gaussian" else task.chains

    def run(seed: int) -> np.ndarray:
        positions = np.zeros((lanes, size[1]), np.float32)
        common = (step, friction)
        place, end = rows.ctypes.data_as(ctypes.c_void_p), positions.ctypes.data_as(ctypes.c_void_p)
        number = ctypes.c_uint64(seed << 32)
        if task.problem == "gaussian":
            program.gaussian(place, size[0], lanes, task.steps, *common, momentum, number, end)
        else:
            prior = ctypes.c_float(PRECISION[task.problem])
            program.logistic(place, *size, task.batch, lanes, task.steps, *common, prior, momentum, number, end)
        return positions

    return run


def numpy(task: Task) -> Runner:
    """NumPy, all chains at once."""
    rows = data(task.problem)
    n, d = rows.shape
    h, gamma, prior = np.float32(task.step_size), np.float32(task.friction or 0), np.float32(PRECISION[task.problem])
    noise = np.float32(np.sqrt(2 * h * (gamma if task.friction else 1)))

    def run(seed: int) -> np.ndarray:
        random = np.random.default_rng(seed)
        theta = np.zeros((task.chains, d), np.float32)
        r = random.standard_normal(theta.shape, np.float32)
        for _ in range(task.steps):
            batch = rows[random.integers(0, n, (task.chains, task.batch))]
            if task.problem == "gaussian":
                force = n * (batch[:, 0] - theta)
            else:
                slopes = (n / task.batch) / (1 + np.exp(np.matmul(batch, theta[:, :, None])))
                force = np.matmul(slopes.transpose(0, 2, 1), batch)[:, 0] - prior * theta
            xi = random.standard_normal(theta.shape, np.float32)
            if task.friction is None:
                theta = theta + h * force + noise * xi
            else:
                theta, r = theta + h * r, r + h * (force - gamma * r) + noise * xi
        return theta

    return run


def products(task: Task) -> Runner:
    """The floor: the matrix products of a network's gradient by NumPy's BLAS, and nothing else."""
    b = task.batch
    layers = {"mlp": [(b, 784, 100), (b, 100, 10)]}
    layers["cnn"] = [(576 * b, 25, 32), (64 * b, 800, 64), (b, 1024, 200), (b, 200, 200), (b, 200, 10)]
    random = np.random.default_rng(0)
    arrays = [
        [random.standard_normal(shape, np.float32) for shape in ((rows, width), (width, out), (rows, out))]
        for rows, width, out in layers[task.problem]
    ]

    def run(seed: int) -> np.ndarray:
        for _ in range(task.steps):
            for number, (inputs, weights, outputs) in enumerate(arrays):
                np.matmul(inputs, weights)
                np.matmul(inputs.T, outputs)
                if number:
                    np.matmul(outputs, weights.T)
        return np.zeros((1, 1))

    return run
