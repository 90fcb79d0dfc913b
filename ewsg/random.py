"""Random numbers for your own estimators, integrators and loops, from typed JAX keys (`jax.random.key`).

A key is either folded (`fold`, any number of times, with different numbers) or used up by one `split` or draw, never
both: of a threefry key, `fold(key, 0)` and the first of `split(key)` may be the same.

Dtypes: `uniform` has no default and takes the dtype it is to return, that of the parameters as a rule (float32 numbers
are multiples of 2⁻²³ in [0, 1): compare with `<`, and expect an exact 0). `normal_like` returns the dtypes of its tree.
Indices are int32. Of the keys that `ewsg.sample` makes on the CPU, `split`, `fold` and all draws here are those of the
library's own counter-based generator; keys of any other JAX generator work alike.
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
    "unpack",
]
