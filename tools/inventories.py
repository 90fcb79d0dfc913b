"""Writes docs/inventories/*.inv, by which the documentation links to other libraries without asking the network.

    python tools/inventories.py

Each holds only what our docstrings and pages refer to: a line below adds an object. The format is Sphinx's, version 2.
"""

import zlib
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "inventories"
SUMMARY = "_autosummary/$.html#$"
"""JAX's and others' scheme of one page per object; `$` stands for its name."""
OBJECTS = {
    "python": {
        "library/functions.html#$": ["class int", "class float", "class bool", "class object"],
        "library/stdtypes.html#$": ["class str", "class list", "class tuple", "class dict", "class set", "class bytes"],
        "library/constants.html#$": ["data None", "data True", "data False"],
        "library/exceptions.html#$": [
            *("exception Exception", "exception ValueError", "exception TypeError", "exception ImportError"),
            *("exception OSError", "exception FileNotFoundError", "exception RuntimeError"),
        ],
        "library/typing.html#$": ["data typing.Any", "class typing.NamedTuple"],
        "library/collections.abc.html#$": [
            *("class collections.abc.Callable", "class collections.abc.Iterable", "class collections.abc.Mapping"),
            *("class collections.abc.Sequence", "class collections.abc.Iterator"),
        ],
        "library/os.html#$": ["class os.PathLike"],
        "library/pathlib.html#$": ["class pathlib.Path"],
    },
    "numpy": {"reference/generated/$.html#$": ["class numpy.ndarray"]},
    "jax": {
        SUMMARY: [
            *("class jax.Array", "function jax.jit", "function jax.vmap", "function jax.random.key"),
            *("function jax.lax.cond", "function jax.lax.scan", "function jax.tree.map"),
        ]
    },
    "equinox": {"api/module/module/#$": ["class equinox.Module"]},
    "arviz": {"api/generated/$.html#$": ["function arviz.summary", "class arviz.InferenceData"]},
    "numpyro": {"mcmc.html#$": ["class numpyro.infer.hmc.NUTS", "class numpyro.infer.mcmc.MCMC"]},
}


def encoded(project: str, objects: dict[str, list[str]]) -> bytes:
    """An inventory: four lines of text, then one compressed line per object."""
    header = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
    header += "# The remainder of this file is compressed using zlib.\n"
    lines = [
        f"{name} py:{role} 1 {place.replace('$', name)} -\n"
        for place, entries in objects.items()
        for role, name in map(str.split, entries)
    ]
    return header.encode() + zlib.compress("".join(sorted(lines)).encode(), 9)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for project, objects in OBJECTS.items():
        (FOLDER / f"{project}.inv").write_bytes(encoded(project, objects))
