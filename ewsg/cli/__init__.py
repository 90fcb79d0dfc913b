"""The command `ewsg`: its subcommands, `ewsg doctor`, and the compiler's canary."""

from .app import main

__all__ = ["main"]
