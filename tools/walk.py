"""Follow one `ewsg.sample` through the package: calls, changes of file, files, and its direct callees in order.

python tools/walk.py [--story]
"""

import itertools
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import jax.numpy as jnp
import numpy as np

import ewsg

PACKAGE = str(Path(ewsg.__file__).parent) + "/"


def walk() -> list[tuple[str, str, int]]:
    """(file, function, depth) of every call into the package while a small posterior is sampled."""
    target = ewsg.Target(lambda mu, x: -0.5 * jnp.sum((x - mu) ** 2), None, np.zeros((50, 2), np.float32))
    parts = ewsg.Paired(4), ewsg.BAOAB(step_size=0.01, friction=5.0)
    seen, depth = [], 0

    def follow(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth
        name = frame.f_code.co_filename
        if not name.startswith(PACKAGE):
            return
        if event == "call":
            depth += 1
            seen.append((name.removeprefix(PACKAGE), frame.f_code.co_qualname, depth))
        elif event == "return":
            depth -= 1

    sys.setprofile(follow)
    try:
        ewsg.sample(target, *parts, init=jnp.zeros(2), num_chains=2, num_steps=100)
    finally:
        sys.setprofile(None)
    return seen


def main() -> None:
    """Print the counts; with --story also what `sample` itself calls, in order."""
    seen = walk()
    calls = [(file, function) for file, function, _ in seen if not function.startswith("<")]
    changes = sum(a[0] != b[0] for a, b in itertools.pairwise(calls))
    print(f"{len(calls):,} calls, {changes} changes of file, {len({file for file, _ in calls})} files")
    if "--story" in sys.argv:
        base = next(depth for file, function, depth in seen if (file, function) == ("sampling.py", "sample"))
        for file, function, depth in seen:
            if depth == base + 1:
                print(f"  {file}  {function}")


if __name__ == "__main__":
    main()
