"""Modules without a posterior: one sentence for each reason."""

from ..errors import InputError

_WHY = "the log posterior is a sum over data in which each datum has a term of its own"


def has_statistics(name: str) -> InputError:
    """For batch normalisation."""
    return InputError(
        f"the module has batch statistics ({name}), which make the output for one datum depend on the others, but "
        f"{_WHY}: use LayerNorm or GroupNorm instead"
    )


def has_dropout(remedy: str) -> InputError:
    """For dropout that is switched on."""
    return InputError(
        "the module has dropout, which makes the likelihood of a datum a random number, but "
        f"{_WHY}: remove it, or switch it off with {remedy}"
    )


def draws_numbers(where: str, remedy: str) -> InputError:
    """For other random numbers."""
    return InputError(
        f"the module draws random numbers ({where}), so its output is not a deterministic function of the parameters, "
        f"but {_WHY}: {remedy}"
    )
