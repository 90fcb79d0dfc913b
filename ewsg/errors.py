"""What can go wrong, by name. Every message is one sentence that says what was wrong and what to do."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """The caller gave something that cannot be sampled, loaded or saved as it is."""


class UnknownOption(InputError, TypeError):
    """A keyword or the name of a choice that does not exist."""


class MissingPackage(InputError, ImportError):
    """A feature needs a package that is not installed; the message has the `pip` line of the extra that brings it."""


class DataNotFound(InputError, FileNotFoundError):
    """A data set is not where it is looked for, and could not be fetched."""


class FileFormatError(InputError):
    """A file is not a run that this library wrote, or is damaged."""


class SaveError(InputError, OSError):
    """A file cannot be written: its place is unfit, the disk is full, or the system refused."""


def unknown(kind: str, given: object, known: Iterable[str]) -> UnknownOption:
    """The error for a name that is not among `known`, with the nearest one suggested."""
    known = sorted(known)
    nearest = difflib.get_close_matches(str(given), known, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    separator = "; " if any("," in name for name in known) else ", "
    return UnknownOption(f"unknown {kind} {given!r}{hint} (known: {separator.join(known)})")


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its class."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
