"""Sharding of chains over JAX's devices: two cores of a machine, or several accelerators."""

from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import Jaxpr
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from .._core.component import check_count
from .._core.jaxpr import bodies
from ..errors import InputError

AXIS = "chains"
_FACTORISATIONS = {
    *("cholesky", "eig", "eigh", "fft", "geqrf", "hessenberg", "householder_product", "lu", "qr", "schur", "svd"),
    *("triangular_solve", "tridiagonal", "tridiagonal_solve"),
}


def mesh(num_chains: int, devices: int) -> Mesh | None:
    """A mesh over the first `devices` local devices, or None for a single device."""
    check_count("sample", "devices", devices, 1)
    present = jax.local_devices()
    if devices > len(present):
        raise InputError(f"devices={devices}, but JAX has {len(present)}: docs/speed.md says how to give it more")
    if num_chains % devices:
        raise InputError(f"num_chains={num_chains} cannot be shared by devices={devices}: use a multiple of {devices}")
    return Mesh(present[:devices], (AXIS,)) if devices > 1 else None


def check(steps: Callable, *args: Any) -> None:
    """Raise InputError if steps or collectors that factorise matrices are to be sharded over CPU cores.

    A factorisation waits for threads of the pool that the devices themselves occupy; with as many devices as cores it
    deadlocks.
    """
    if jax.default_backend() == "cpu" and (found := _factorisations(jax.make_jaxpr(steps)(*args).jaxpr)):
        raise InputError(f"devices= must be 1 on the CPU if steps factorise matrices ({', '.join(found)})")


def _factorisations(jaxpr: Jaxpr) -> list[str]:
    names = {eqn.primitive.name for eqn in jaxpr.eqns} & _FACTORISATIONS
    return sorted(names.union(*(_factorisations(body) for eqn in jaxpr.eqns for body in bodies(eqn))))


def place(tree: Any, specs: Any, mesh: Mesh | None) -> Any:
    """The same arrays, sharded by `specs`, a prefix of the tree."""
    if mesh is None:
        return tree
    shardings = jax.tree.map(
        lambda spec: NamedSharding(mesh, spec), specs, is_leaf=lambda spec: isinstance(spec, PartitionSpec)
    )
    return jax.device_put(tree, shardings)
