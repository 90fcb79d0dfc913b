"""Reference answers that took NUTS minutes to find, shipped beside this file: `tools/answers.py` makes them."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..target.fingerprint import check_same_target, fingerprint
from .base import Answer, Problem

FOLDER = Path(__file__).parent / "answers_npz"


def write(name: str, problem: Problem, answer: Answer) -> None:
    """Saves an answer with a fingerprint of the problem that it belongs to."""
    probe = fingerprint(problem.target, jax.tree.map(jnp.asarray, answer.start))
    header = {"source": answer.source, "fingerprint": {key: probe[key] for key in ("num_data", "data", "values")}}
    leaves: dict[str, Any] = {f"start{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(answer.start))}
    FOLDER.mkdir(exist_ok=True)
    numbers: dict[str, Any] = {"mean": answer.mean, "cov": answer.cov.astype(np.float32), "header": json.dumps(header)}
    np.savez_compressed(FOLDER / f"{name}.npz", **numbers, **leaves)


def read(name: str, problem: Problem) -> Answer:
    """The answer of a problem: in closed form, or as shipped, if it belongs to this posterior."""
    if problem.exact is not None:
        return problem.solve()
    path = FOLDER / f"{name}.npz"
    if not path.is_file():
        raise InputError(f"no reference answer is shipped for {name}: `python tools/answers.py {name}` finds it")
    with np.load(path) as stored:
        header = json.loads(str(stored["header"]))
        treedef = jax.tree.structure(problem.init)
        start = jax.tree.unflatten(treedef, [stored[f"start{i}"] for i in range(treedef.num_leaves)])
        mean, cov = stored["mean"], stored["cov"].astype(np.float64)
    check_same_target(header["fingerprint"] | {"position": start}, problem.target)
    return Answer(mean, cov, start, header["source"])
