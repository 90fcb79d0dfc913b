"""Third-party packages that only some features need: the extras of pyproject.toml."""

import importlib
from typing import Any

from ..errors import MissingPackage

_DISTRIBUTIONS = {"sklearn": "scikit-learn"}


def require(module: str, *, extra: str | None = None) -> Any:
    """Import a third-party module, or raise `MissingPackage` with the line that installs it.

    Args:
        module: its name, with dots for a submodule.
        extra: the extra of `ewsg` that installs its package; None if there is none, because the package is only of use
            to those who have it.
    """
    package = module.split(".")[0]
    try:
        importlib.import_module(package)  # before its parts: those of a lazy proxy (ArviZ 1 has one) would load twice
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != package:  # it is installed, but one of its own imports failed
            raise
        name = _DISTRIBUTIONS.get(package, package)
        wanted = f"'ewsg[{extra}]'" if extra else name
        message = f"this needs the package {name}, which is not installed: pip install {wanted}"
        raise MissingPackage(message) from None
