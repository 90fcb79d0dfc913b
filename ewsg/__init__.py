"""Stochastic-gradient MCMC whose minibatches are chosen, not only drawn."""

import ast
import importlib
from pathlib import Path
from typing import Any

__version__ = "0.1.0"


def _public_names() -> dict[str, str | None]:
    """The names that `__init__.pyi` imports, and the module each comes from; None if it is a module itself."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module for node in imports for alias in node.names}


_HOMES = _public_names()

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used, so that `ewsg --help` does not wait for JAX."""
    if name not in _HOMES:
        raise AttributeError(f"module 'ewsg' has no attribute {name!r}")
    home = _HOMES[name]
    if home is None:
        return importlib.import_module(f".{name}", __name__)
    value = getattr(importlib.import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
