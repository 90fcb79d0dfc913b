"""Fingerprints of targets: is this the target that a saved run was drawn from?"""

import hashlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._core.types import HostOrDevice, Indices, Position
from ..errors import InputError
from .density import densities, spaced
from .target import Target

_HASHED_BYTES = 16 * 2**20
_PROBED_DATA = 16


def probed_rows(target: Target) -> np.ndarray:
    """Row numbers of the data whose log-likelihoods are part of a fingerprint."""
    return spaced(target.num_data, _PROBED_DATA)


def fingerprint(
    target: Target, position: Position, values: tuple[HostOrDevice, HostOrDevice] | None = None
) -> dict[str, Any]:
    """A digest of the data, the values of the densities at `position`, and `position` itself.

    Args:
        target: the posterior.
        position: any position, such as the start of the first chain.
        values: the log prior, and the log-likelihoods of the data at `probed_rows`, if already computed.
    """
    if values is None:
        alone = jax.tree.map(lambda leaf: np.asarray(leaf)[None], position)
        prior, rows = densities(target, alone, probed_rows(target))
        values = np.asarray(prior)[0], np.asarray(rows)[0]
    return {
        "num_data": target.num_data,
        "data": _digest(target.data.arrays),
        "values": [float(values[0]), *np.asarray(values[1], np.float64).tolist()],
        "position": jax.tree.map(np.asarray, position),
    }


def check_same_target(saved: dict[str, Any], target: Target) -> None:
    """Raise InputError if the data or densities differ from those of the saved run."""
    if saved["num_data"] != target.num_data:
        raise InputError(
            f"the saved run has a different target: it had {saved['num_data']} data and this one has {target.num_data}"
        )
    if saved["data"] != _digest(target.data.arrays):
        raise InputError("the saved run has a different target: its data differ, so its chains cannot continue")
    if any(jax.dtypes.canonicalize_dtype(leaf.dtype) != leaf.dtype for leaf in jax.tree.leaves(saved["position"])):
        raise InputError("the saved run has 64-bit parameters: set jax.config.update('jax_enable_x64', True) first")
    try:
        now = fingerprint(target, jax.tree.map(jnp.asarray, saved["position"]))["values"]
    except Exception as error:
        raise InputError("the saved run has a different target: its parameters do not fit this likelihood") from error
    if len(now) != len(saved["values"]) or not np.allclose(now, saved["values"], rtol=1e-4, atol=1e-5):
        raise InputError(
            "the saved run has a different target: the data are the same, but the values of log_likelihood or "
            "log_prior are not"
        )


def _digest(arrays: Any) -> str:
    """SHA-256 over structure, shapes, dtypes and evenly spaced rows, up to 16 MiB per array."""
    digest = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(arrays):
        digest.update(f"{jax.tree_util.keystr(path)} {leaf.shape} {leaf.dtype}\n".encode())
        row_bytes = max(1, leaf.nbytes // leaf.shape[0])
        rows = _rows(leaf, spaced(leaf.shape[0], max(1, _HASHED_BYTES // row_bytes)))
        digest.update(np.ascontiguousarray(rows).tobytes())
    return digest.hexdigest()


@jax.jit
def _rows(array: jax.Array, indices: Indices) -> jax.Array:
    return array.at[indices].get(mode="promise_in_bounds")
