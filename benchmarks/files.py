"""A million rows of CSV, from the file to coefficients: time and memory of `ewsg sample`.

    python benchmarks/files.py [--rows 1000000] [--columns 30] [--folder DIR]

Writes a CSV file of numbers with six decimals, one column of words and an outcome of two classes, runs the command on
it in a process of its own, twice (the second finds compiled programs in JAX's cache), and prints wall-clock and CPU
seconds and the peak of its memory, also in units of the file.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

LIMITS = {"seconds": 60.0, "files": 3.0}
COMMAND = "import sys; sys.argv[0] = 'ewsg'; from ewsg.cli import main; main()"


def write(path: Path, rows: int, columns: int) -> None:
    """Numbers, some on scales of their own, one column of words, and an outcome of two classes."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, columns - 1))
    eta = -1 + x[:, :4] @ np.array([0.3, 0.5, -0.5, 0.2])
    x[:, 0] = 2000 + 5 * x[:, 0]
    x[:, 1] = np.exp(x[:, 1])
    table = {f"x{j}": x[:, j].round(6) for j in range(columns - 1)}
    table["colour"] = rng.choice(["black", "blue", "green", "red"], rows)
    table["bought"] = np.where(rng.logistic(size=rows) < eta, "yes", "no")
    pl.DataFrame(table).write_csv(path)


def measure(path: Path, cache: str) -> tuple[float, float, float]:
    """Seconds, CPU seconds and peak bytes of one command."""
    arguments = [sys.executable, "-c", COMMAND, "sample", str(path), "--outcome", "bought"]
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": cache}
    process, peak = subprocess.Popen(arguments, env=environment), 0.0
    while process.poll() is None:
        peak = max(peak, _peak(process.pid))
        time.sleep(0.05)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert process.returncode == 0
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, processor, peak


def _peak(pid: int) -> float:
    """Peak bytes of a running process, from Linux: those of getrusage include the process that started it."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((1024.0 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0.0)


def main() -> None:
    """Write the file, run the command twice, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument(
        "--folder", type=Path, default=None, help="where the file is written; a temporary one by default"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        path = (options.folder or Path(temporary)) / "table.csv"
        write(path, options.rows, options.columns)
        size = path.stat().st_size
        print(f"{options.rows:,} rows × {options.columns} columns, {size / 1e6:,.0f} MB of CSV\n", flush=True)
        found = [measure(path, temporary) for _ in range(2)]
        for kind, (seconds, processor, peak) in zip(("cold", "warm"), found, strict=True):
            print(
                f"{kind} cache: {seconds:.1f} s (limit {LIMITS['seconds']:g}), {processor:.1f} s of CPU, peak memory "
                f"{peak / 1e6:,.0f} MB, {peak / size:.2f} times the file (limit {LIMITS['files']:g})"
            )


if __name__ == "__main__":
    main()
