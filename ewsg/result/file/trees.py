"""Pytrees as JSON and a list of arrays: the structure, the key path of every leaf, and the leaves in JAX's order."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import InputError

_LEAF = "leaf"
_KEY_TYPES = (bool, float, int, str)


class Form(NamedTuple):
    """A pytree without its leaves.

    Attributes:
        structure: in JSON: null for None, "leaf", {"dict": [[key, child], ...]}, {"list": [child, ...]},
            {"tuple": [child, ...]}; for any other class only the number of leaves, {"other": number}.
        paths: the key path of every leaf, in the order in which JAX flattens the tree.
    """

    structure: Any
    paths: list[str]

    def build(self, leaves: list[Any]) -> Any:
        """The tree with these leaves; classes other than dict, list and tuple become dicts from paths to leaves."""
        return _build(self.structure, "", iter(zip(self.paths, leaves, strict=True)))

    def is_plain(self) -> bool:
        """Whether `build` gives back the classes of the original tree."""
        return _is_plain(self.structure)

    def arrange(self, tree: Any) -> list[Any] | None:
        """The leaves of a tree made by `build`, in the original order; None if the tree has another structure."""
        places = self.build(list(range(len(self.paths))))
        if jax.tree.structure(places) != jax.tree.structure(tree):
            return None
        placed = dict(zip(jax.tree.leaves(places), jax.tree.leaves(tree), strict=True))
        return [placed[i] for i in range(len(placed))]


class StoredTree(NamedTuple):
    """A pytree taken apart, to be written to a file, pickled or copied."""

    form: Form
    leaves: list[np.ndarray]


class SavedChains(NamedTuple):
    """A checkpoint as arrays, as a loaded, unpickled or copied run holds it.

    Attributes:
        tree: the checkpoint, taken apart.
        forms: the structures of the run's trees in its file, by name; empty if the run was not loaded.
    """

    tree: StoredTree
    forms: dict[str, Form]


def store(tree: Any) -> StoredTree:
    """A pytree of arrays, taken apart; typed keys become their words."""
    named, _ = flatten(tree, "the run")
    form = Form(_structure(tree), [path for path, _ in named])
    return StoredTree(form, [_to_host(path, leaf) for path, leaf in named])


def flatten(tree: Any, name: str) -> tuple[list[tuple[str, Any]], Any]:
    """(path, leaf) for every leaf of a tree, and its structure; errors call the tree `name`."""
    try:
        named, structure = jax.tree_util.tree_flatten_with_path(tree)
    except ValueError as error:
        raise InputError(f"{name} has dict keys of types that cannot be sorted: use keys of one type") from error
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in named], structure


def count_leaves(structure: Any) -> int:
    """The number of leaves of a structure read from a file; raises ValueError unless `store` could have made it."""
    if structure is None:
        return 0
    if structure == _LEAF:
        return 1
    if not isinstance(structure, dict) or len(structure) != 1:
        raise ValueError("not a structure")
    ((kind, content),) = structure.items()
    if kind == "other" and type(content) is int and content >= 0:
        return content
    if kind in ("list", "tuple") and isinstance(content, list):
        return sum(count_leaves(child) for child in content)
    if kind == "dict" and isinstance(content, list):
        keys = [key for key, _ in content]
        if all(type(key) in _KEY_TYPES for key in keys) and sorted(keys) == keys and len(set(keys)) == len(keys):
            return sum(count_leaves(child) for _, child in content)
    raise ValueError("not a structure")


def _structure(tree: Any) -> Any:
    if tree is None:
        return None
    if isinstance(tree, dict) and type(tree) is dict and all(type(key) in _KEY_TYPES for key in tree):
        return {"dict": [[key, _structure(tree[key])] for key in sorted(tree)]}
    if isinstance(tree, list | tuple) and type(tree) in (list, tuple):
        return {type(tree).__name__: [_structure(child) for child in tree]}
    if jax.tree_util.all_leaves([tree]):
        return _LEAF
    return {"other": len(jax.tree.leaves(tree))}


def _build(structure: Any, prefix: str, named: Iterator[tuple[str, Any]]) -> Any:
    if structure is None:
        return None
    if structure == _LEAF:
        return next(named)[1]
    ((kind, content),) = structure.items()
    if kind == "dict":
        return {key: _build(child, f"{prefix}[{key!r}]", named) for key, child in content}
    if kind in ("list", "tuple"):
        children = [_build(child, f"{prefix}[{i}]", named) for i, child in enumerate(content)]
        return children if kind == "list" else tuple(children)
    inside = [next(named) for _ in range(content)]
    names = [path.removeprefix(prefix) for path, _ in inside]
    if len(set(names)) < len(names):
        names = [f"{name}#{i}" for i, name in enumerate(names)]
    return dict(zip(names, (leaf for _, leaf in inside), strict=True))


def _is_plain(structure: Any) -> bool:
    if structure is None or structure == _LEAF:
        return True
    ((kind, content),) = structure.items()
    children = [child for _, child in content] if kind == "dict" else content
    return kind != "other" and all(map(_is_plain, children))


def _to_host(path: str, leaf: Any) -> np.ndarray:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    try:
        array = np.asarray(leaf)
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    except Exception as error:
        raise InputError(f"the run cannot be saved: its entry {path} is not an array") from error
