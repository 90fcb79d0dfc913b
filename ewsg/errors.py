"""What can go wrong, by name. Every message is one sentence that says what was wrong and what to do."""

import difflib
from collections.abc import Iterable

_SHOWN = 100
_REMEDIES = {  # by the names of JAX's errors: this module does not import it
    "TracerBoolConversionError": "use jnp.where in place of if, and jnp.logical_and in place of and",
    "TracerArrayConversionError": "use jax.numpy in place of NumPy",
    "TracerIntegerConversionError": "index a jnp.array in place of a list",
    "ConcretizationTypeError": "use jax.numpy, and do not turn its values into Python numbers",
}


class InputError(ValueError):
    """The caller gave something that cannot be sampled, loaded or saved as it is."""


class UnknownOption(InputError, TypeError):
    """A keyword or the name of a choice that does not exist."""


class MissingPackage(InputError, ImportError):
    """A feature needs a package that is not installed; the message has the `pip` line of the extra that brings it."""


class DataNotFound(InputError, FileNotFoundError):
    """A data set was not found on the search path, and could not be fetched."""


class NoPlan(InputError):
    """A posterior that no plan was found for; the message says why, and what to do."""


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
    return UnknownOption(f"unknown {kind} {shown(given)}{hint} (known: {separator.join(known)})")


def first_line(error: BaseException) -> str:
    """What an error of the user's own function says, in one line, with a remedy where JAX's words give none."""
    kind = type(error).__name__
    message = (str(error).strip() or kind).splitlines()[0]
    if isinstance(error, KeyError) and error.args:  # its message is the key alone
        return f"{kind} {message}"
    return f"{message.rstrip('.')}: {_REMEDIES[kind]}" if kind in _REMEDIES else message


def shown(value: object) -> str:
    """A value as errors show it: in one line, cut short."""
    line = " ".join(repr(value).split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."
