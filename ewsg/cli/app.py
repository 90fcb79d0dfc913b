"""The command line: parses and prints, nothing else. JAX is imported only by the commands that need it."""

import contextlib
import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import platformdirs
import typer

import ewsg

from ..errors import InputError
from . import files

EXAMPLES = """\b
Examples:
  ewsg demo                       the demonstration, into ./ewsg-demo
  ewsg demo --quick --seed 1      the same in seconds, with another seed
  ewsg doctor                     is this installation fit to sample with?
  ewsg sample x.csv --outcome y   a regression of one column on all others, with nothing to tune
  ewsg report run.npz             a saved run on one page: report.html
  ewsg bench accuracy             every method against reference posteriors, at equal cost
  ewsg bench factors              which part of a method buys what
  ewsg bench speed --tasks A      the loop against C, BlackJAX and others
  ewsg list                       the paper's experiments, and the problems of the benchmark
  ewsg reproduce gaussian-kl      one of them, with a verdict on each of the paper's claims
"""
REPORT_EXAMPLES = """\b
Examples:
  ewsg report run.npz                        a page on the run that run.save("run.npz") wrote, into ./report.html
  ewsg report run.npz --out pages/run.html   the same, elsewhere
"""
REPRODUCE_EXAMPLES = """\b
Examples:
  ewsg reproduce gaussian-kl                           into ./ewsg-gaussian-kl; minutes, and it can be interrupted
  ewsg reproduce blr-covertype --scale smoke           the same in miniature
  ewsg reproduce --all --scale laptop --out results    everything, and results/reproduction.md
"""
ACCURACY_EXAMPLES = """\b
Examples:
  ewsg bench accuracy                               everything; two hours on two cores, and it can be interrupted
  ewsg bench accuracy --scale smoke --seeds 1       the same in miniature
  ewsg bench accuracy --problem pima --method SGHMC --method paired
  ewsg bench accuracy --problem pima --method SGHMC --method my_module:my_method
"""
FACTORS_EXAMPLES = """\b
Examples:
  ewsg bench factors                                into ./ewsg-factors; an hour on two cores, and it can be interrupted
  ewsg bench factors --problem pima --scale smoke   one problem in miniature
"""

_NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE, errno.EROFS)

app = typer.Typer(
    help="Stochastic-gradient MCMC in JAX whose minibatches are chosen, not only drawn.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # with rich, the help takes twice as long
)

bench = typer.Typer(help="Measure accuracy and speed.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(bench, name="bench")
app.command(epilog=files.SAMPLE_EXAMPLES)(files.sample)
app.command(epilog=files.CHECK_EXAMPLES)(files.check)


def _version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"ewsg {ewsg.__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Output folder.")] = Path("ewsg-demo"),
    seed: Annotated[int, typer.Option(help="Seed of all randomness.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer steps: seconds instead of minutes.")] = False,
) -> None:
    """Sample a real posterior with chosen and with random minibatches."""
    from ..lab.demo import main

    main(out=out, seed=seed, quick=quick)


@app.command()
def doctor() -> None:
    """Check versions, devices, the compiler and the data. The exit code is 1 if anything is unfit."""
    from .doctor import check, render

    report = check()
    render(report)
    raise typer.Exit(0 if report.ok else 1)


@app.command(epilog=REPORT_EXAMPLES)
def report(
    run: Annotated[Path, typer.Argument(help="A file written by run.save, or by save_to=.")],
    out: Annotated[Path, typer.Option(help="The page to write; it is replaced if it exists.")] = Path("report.html"),
) -> None:
    """Write a page on a saved run: verdict, marginals, convergence, subsampling, cost, settings."""
    from ..result.storage import load

    load(run).report(out)
    typer.echo(f"Wrote {out}.")


@app.command(epilog=REPRODUCE_EXAMPLES)
def reproduce(
    name: Annotated[str | None, typer.Argument(help="An experiment: `ewsg list` names them.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All experiments, each in a folder of its own.")] = False,
    scale: Annotated[str, typer.Option(help="smoke (seconds), laptop (minutes) or paper (its own budget).")] = "laptop",
    out: Annotated[Path | None, typer.Option(help="Output folder; an interrupted run continues there.")] = None,
    redraw: Annotated[bool, typer.Option("--redraw", help="Sample nothing: judge and draw what --out holds.")] = False,
) -> None:
    """Reproduce a figure or table of the paper, and test its claims."""
    from ..lab import experiments

    if everything == (name is not None):
        raise InputError(f"give one experiment, or --all (experiments: {', '.join(experiments.EXPERIMENTS)})")
    if name is None:
        report = experiments.reproduce_all(scale, out or Path("ewsg-reproduction"), redraw)
        typer.echo(f"Wrote {report}.")
    else:
        experiments.reproduce(name, scale, out, redraw)


@app.command("list")
def list_() -> None:
    """Name the paper's experiments and the problems of the benchmark."""
    from .. import problems
    from ..lab import experiments

    typer.echo("experiments (ewsg reproduce NAME):")
    for name, experiment in experiments.EXPERIMENTS.items():
        typer.echo(f"  {name:14} {experiment.shows}")
    typer.echo(f"problems (ewsg bench accuracy --problem NAME):\n  {', '.join(problems.names())}")


@bench.command(epilog=ACCURACY_EXAMPLES)
def accuracy(
    out: Annotated[Path, typer.Option(help="Output folder; an interrupted run continues there.")] = Path(
        "ewsg-accuracy"
    ),
    problem: Annotated[list[str] | None, typer.Option(help="A problem; again for more. All by default.")] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="A method, or your own as module:object; again for more. All of ours by default."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Independent repeats.")] = 3,
    first_seed: Annotated[int, typer.Option(min=0, help="Seed of the first repeat.")] = 0,
    scale: Annotated[str, typer.Option(help="smoke (minutes) or laptop.")] = "laptop",
) -> None:
    """Compare all methods on nine posteriors at equal datum gradients."""
    from ..lab.accuracy.benchmark import compare

    compare(out, problem or (), method or (), seeds, scale, first_seed=first_seed)


@bench.command(epilog=FACTORS_EXAMPLES)
def factors(
    out: Annotated[Path, typer.Option(help="Output folder; an interrupted run continues there.")] = Path(
        "ewsg-factors"
    ),
    problem: Annotated[list[str] | None, typer.Option(help="A problem; again for more. All by default.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="A method; again for more. All by default.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Independent repeats.")] = 3,
    scale: Annotated[str, typer.Option(help="smoke (minutes) or laptop.")] = "laptop",
) -> None:
    """Measure what coordinates, control variates, pairs and leverage buy, every method tuned alike."""
    from ..lab.accuracy.factors import compare_factors

    compare_factors(out, problem or (), method or (), seeds, scale)


@bench.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
def speed(context: typer.Context) -> None:
    """Time the loop against its peers on one core (needs a checkout): --tasks, --sides, --repeats, --core, --json."""
    script = Path(ewsg.__file__).parent.parent / "benchmarks" / "speed.py"
    if not script.is_file():
        raise InputError("the speed benchmark is not part of the installed package: run it from a checkout of the code")
    raise typer.Exit(subprocess.run([sys.executable, str(script), *context.args], check=False).returncode)


def main() -> None:
    """Run the command line: an `InputError` is one sentence on stderr and exit code 2, a full disk likewise and 1."""
    # Compiled programs are kept between runs. XLA logs an unfounded error per program that it reads back on a
    # CPU (tuning hints look to it like missing machine features); real errors are exceptions.
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(platformdirs.user_cache_path("ewsg") / "jax"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except InputError as error:
        print(f"ewsg: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        if error.errno not in _NOT_WRITTEN:
            raise
        _forget_output()
        if error.errno != errno.EPIPE:  # the reader has closed the pipe, as `head` does: nothing to report
            where = error.filename or "the output"
            print(f"ewsg: cannot write {where}: {error.strerror}; free some space or write elsewhere", file=sys.stderr)
        raise SystemExit(1) from None


def _forget_output() -> None:
    """Sends the rest of stdout to the null device, so that the interpreter does not fail on it when it exits."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
