"""Stochastic-gradient MCMC whose minibatches are chosen, not only drawn."""

import ast
import importlib
from pathlib import Path
from typing import Any

__version__ = "0.1.0"


def _exports(file: Path) -> dict[str, str | None]:
    """The names that a file imports from its neighbours, and the module each comes from; None if it is a module itself.

    `from .estimators.public import *` stands for the names that `estimators/public.py` imports.
    """
    nodes = [node for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    found = {alias.name: node.module for node in nodes for alias in node.names if alias.name != "*"}
    for module in (node.module for node in nodes if node.module and node.names[0].name == "*"):
        found |= dict.fromkeys(_exports(file.parent.joinpath(*module.split(".")).with_suffix(".py")), module)
    return found


_HOMES = _exports(Path(__file__).with_suffix(".pyi"))

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
