"""The command `ewsg`: its subcommands, `ewsg doctor`, and the compiler's canary."""

import sys

from .._core.optional import require
from ..errors import MissingPackage


def main() -> None:
    """Run the command line; without the packages of `ewsg[lab]`, say in one sentence how to install them."""
    try:
        for package in ("typer", "platformdirs"):
            require(package, extra="lab")
    except MissingPackage as error:
        print(f"ewsg: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    from .app import main

    main()
