"""Random numbers for your own estimators, integrators and loops, from typed JAX keys (`jax.random.key`).

A key is either folded (`fold`, any number of times, with different numbers) or used up by one `split` or draw, never
both: of a threefry key, `fold(key, 0)` and the first of `split(key)` may be equal.

Dtypes: `uniform` has no default and takes the dtype to return, as a rule that of the parameters (float32 numbers
are multiples of 2⁻²³ in [0, 1): compare with `<`, and expect an exact 0). `normal_like` returns the dtypes of its tree,
`uniform_like` the widest of them and at least float32.
Indices are int32. The keys that `ewsg.sample` makes on the CPU belong to the library's own counter-based generator;
keys of any other JAX generator work just as well.
"""

from ._random import (
    categorical,
    distinct_indices,
    fold,
    generator_of,
    indices,
    normal_like,
    pack,
    shuffled,
    split,
    uniform,
    uniform_like,
    unpack,
)

__all__ = [
    "categorical",
    "distinct_indices",
    "fold",
    "generator_of",
    "indices",
    "normal_like",
    "pack",
    "shuffled",
    "split",
    "uniform",
    "uniform_like",
    "unpack",
]
