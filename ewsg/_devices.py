"""Chains shared out over the devices that JAX has: two cores of a machine, or several accelerators."""

from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ._component import check_count
from .errors import InputError

AXIS = "chains"


def mesh(num_chains: int, devices: int | None = None) -> Mesh | None:
    """As many of JAX's devices as share `num_chains` evenly, or as many as are asked for; None is one."""
    present = jax.local_devices()
    if devices is None:
        devices = max(count for count in range(1, len(present) + 1) if num_chains % count == 0)
    check_count("sample", "devices", devices, 1)
    if devices > len(present):
        raise InputError(f"devices={devices}, but JAX has {len(present)}: see docs/speed.md on how to give it more")
    if num_chains % devices:
        raise InputError(f"num_chains={num_chains} cannot be shared by devices={devices}: take a multiple of it")
    return Mesh(present[:devices], (AXIS,)) if devices > 1 else None


def place(tree: Any, specs: Any, mesh: Mesh | None) -> Any:
    """The same arrays, laid out as `specs` (a prefix of the tree) says."""
    if mesh is None:
        return tree
    shardings = jax.tree.map(
        lambda spec: NamedSharding(mesh, spec), specs, is_leaf=lambda spec: isinstance(spec, PartitionSpec)
    )
    return jax.device_put(tree, shardings)
