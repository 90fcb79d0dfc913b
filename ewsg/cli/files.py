"""`ewsg sample` and `ewsg check`: data files from the command line."""

import contextlib
import ctypes
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

SAMPLE_EXAMPLES = """\b
Examples:
  ewsg sample patients.csv --outcome survived                  logistic, softmax or linear, by the outcome's values
  ewsg sample visits.parquet --outcome visits --model negative-binomial --drop id --drop name
  ewsg sample houses.tsv --outcome price --missing indicator --out houses.npz
  ewsg sample a9a.libsvm --outcome label --accuracy 0.02 --seed 1
Exit codes: 0, the accuracy was reached; 1, it was not; 2, the data cannot be sampled as asked, and nothing was written.
"""
CHECK_EXAMPLES = """\b
Examples:
  ewsg check patients.csv    columns and their kinds, rows with missing or infinite values
"""
_ARENA_MAX, _MMAP_THRESHOLD = -8, -3  # of mallopt, in glibc's malloc.h
_LARGE_BYTES = 2**20


class Model(StrEnum):
    """The regressions."""

    auto = "auto"
    logistic = "logistic"
    linear = "linear"
    poisson = "poisson"
    softmax = "softmax"
    negative_binomial = "negative-binomial"


class Missing(StrEnum):
    """The treatments of missing values."""

    drop = "drop"
    indicator = "indicator"
    error = "error"


Data = Annotated[Path, typer.Argument(help="CSV, TSV, Parquet, Feather, NPZ or LIBSVM, by its suffix.")]


def sample(
    data: Data,
    outcome: Annotated[str, typer.Option(help="The column to explain by all others.")],
    model: Annotated[Model, typer.Option(help="The regression; auto goes by the outcome's values.")] = Model.auto,
    accuracy: Annotated[float, typer.Option(help="Of every mean and sd, in posterior sds.")] = 0.05,
    out: Annotated[Path | None, typer.Option(help="Save the run to this file (.npz).")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all randomness.")] = 0,
    drop: Annotated[list[str] | None, typer.Option(help="A column not to use; again for more.")] = None,
    category: Annotated[
        list[str] | None, typer.Option(help="A column of numbers that name categories; again for more.")
    ] = None,
    missing: Annotated[
        Missing, typer.Option(help="Leave out rows with missing values, fill in and mark them, or refuse them.")
    ] = Missing.drop,
) -> None:
    """Sample a regression of one column of a data file on all others."""
    _return_memory()
    from .. import files
    from ..result.storage import check_replaceable

    if out is not None:
        check_replaceable(out)
    table = files.read(
        data, outcome, model=model.value, missing=missing.value, drop=drop or (), categories=category or ()
    )
    typer.echo(f"{table}\n")
    run = table.sample(accuracy=accuracy, seed=seed)
    typer.echo(f"{table.coefficients(run)}\n\n{run.verdict}")
    if out is not None:
        run.save(out)
        typer.echo(f"Saved to {out}: ewsg.files.coefficients(ewsg.load({str(out)!r})) gives this table again.")
    raise typer.Exit(0 if run.verdict is not None and run.verdict.reached else 1)


def check(data: Data) -> None:
    """List the columns of a data file and its faulty rows. The exit code is 1 if a row cannot be sampled as it is."""
    from .. import files

    found = files.check(data)
    typer.echo(str(found))
    raise typer.Exit(0 if found.ok else 1)


def _return_memory() -> None:
    """Have freed memory returned to the system: glibc would keep a heap per thread, and free blocks of up to 32 MiB."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library
        tune = ctypes.CDLL(None).mallopt
        tune(_ARENA_MAX, 1)
        tune(_MMAP_THRESHOLD, _LARGE_BYTES)
