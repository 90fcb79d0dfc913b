"""How the time of a step grows with the number of data, the batch, the dimension and the chains; and memory.

    python benchmarks/growth.py [--out FOLDER] [--sweeps data batch ...]
    python benchmarks/growth.py --profile data      # the kernels of a step at both ends of a sweep

One core, CPU seconds. The time of a step is the slope between a short and a long run of the same compiled
loop, the median of several turns; the exponent is the slope of log time over log size, from the size at which the fixed
cost of a step no longer matters. Memory is the peak of a process of its own.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine
import numpy as np

HERE = Path(__file__).parent
SWEEPS = {
    "data": ("n, rows", [10**4, 10**5, 10**6, 10**7, 10**8], 10**4, 0.0),
    "batch": ("b, data per step", [25, 50, 100, 200, 400, 800, 1600], 100, 1.0),
    "dimension": ("d, parameters", [8, 32, 128, 512, 2048, 8192, 32_768], 2048, 1.0),
    "chains": ("chains", [10, 40, 160, 640, 2560, 10_240], 640, 1.0),
}
"""By name: axis label, sizes, the size from which the exponent is fitted, the expected exponent."""
_TURNS = 5


def problem(sweep: str, size: int, folder: Path) -> dict:
    """Rows, and the settings of the run."""
    settings = {"batch": 50, "chains": 10, "n": 100_000, "d": 32}
    name = {"data": "n", "batch": "batch", "dimension": "d", "chains": "chains"}[sweep]
    settings[name] = size
    if sweep == "data":
        settings["d"] = 1
    if sweep == "dimension":
        settings["n"] = 4_096
    rows = np.lib.format.open_memmap(folder / "rows.npy", "w+", np.float32, (settings["n"], settings["d"]))
    random = np.random.default_rng(0)
    for start in range(0, len(rows), 1 << 20):
        part = rows[start : start + (1 << 20)]
        part[:] = random.standard_normal(part.shape, np.float32)
    rows.flush()
    return settings | {"rows": str(folder / "rows.npy")}


def runner(settings: dict):
    """A function of a number of steps that runs them."""
    import jax
    import jax.numpy as jnp

    import ewsg

    rows = np.load(settings["rows"], mmap_mode="r")
    d = settings["d"]
    target = ewsg.Target(lambda theta, row: jax.nn.log_sigmoid(jnp.dot(row, theta)), None, rows)
    method = ewsg.Uniform(settings["batch"]), ewsg.Underdamped(1e-3 / len(rows) ** 0.5, 10.0 * len(rows) ** 0.5)

    def run(steps: int) -> float:
        options = {"num_chains": settings["chains"], "num_steps": steps, "discard": steps - 1, "thin": 1}
        began = time.process_time()
        ewsg.sample(target, *method, init=jnp.zeros(d), progress=False, **options)
        return time.process_time() - began

    return run


def work(settings: dict) -> dict:
    """Seconds of a step and the peak of memory; in a process of its own."""
    machine.stay_on(machine.cores()[:1])
    run = runner(settings)
    if "profile" in settings:
        import profile_loop

        steps = settings["profile"]
        run(steps)
        profile_loop.show(profile_loop.kernels(lambda: run(steps), steps)[:8])
        return {}
    run(1)
    begin = run(1)
    short = 16
    while run(short) < begin + 0.1:
        short *= 2
    long, found = 3 * short, []
    for _ in range(_TURNS):
        found.append((run(long) - run(short)) / (long - short))
    peak = machine.peak_bytes()
    return {"seconds": sorted(found)[_TURNS // 2], "least": min(found), "steps": long, "peak_bytes": peak}


def measure(sweep: str, size: int, **options: int) -> dict:
    """One point of a sweep; with profile=STEPS the profile is printed instead."""
    with tempfile.TemporaryDirectory() as folder:
        settings = problem(sweep, size, Path(folder)) | options
        command = [sys.executable, __file__, "--worker", json.dumps(settings)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    *lines, last = answer.splitlines()
    if lines:
        print(f"{sweep} {size:,}", *lines, sep="\n", flush=True)
    return {"size": size, **json.loads(last)}


def exponent(points: list[dict], start: float) -> float:
    """The slope of log seconds over log size."""
    used = [(point["size"], point["seconds"]) for point in points if point["size"] >= start]
    sizes, seconds = np.log(np.array(used)).T
    return float(np.polyfit(sizes, seconds, 1)[0])


def draw(found: dict, path: Path) -> None:
    """One panel per sweep, with the line of the expected exponent."""
    from ewsg.lab import figures, styles

    color, marker, _ = styles.style("SGHMC")
    with figures.drawing(path, columns=len(found), width=3.1, height=3.0) as (_, axes):
        for axis, (name, sweep) in zip(axes, found.items(), strict=True):
            label, _, start, hoped = SWEEPS[name]
            sizes = np.array([point["size"] for point in sweep["points"]], float)
            seconds = np.array([point["seconds"] for point in sweep["points"]]) * 1e6
            anchor = int(np.flatnonzero(sizes >= start)[0])
            axis.loglog(sizes, seconds, marker=marker, linestyle="-", color=color, markersize=4, label="SGHMC")
            ideal = seconds[anchor] * (sizes[anchor:] / sizes[anchor]) ** hoped
            axis.loglog(sizes[anchor:], ideal, "--", color="0.5", label=f"slope {hoped:g}")
            axis.set(xlabel=label, title=f"exponent {sweep['exponent']:.2f}", ylim=(1, None))
            axis.legend(fontsize=8, loc="best")
        axes[0].set_ylabel("µs per step of all chains")


def main() -> None:
    """Runs the sweeps; writes results.json and a figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "build" / "growth")
    parser.add_argument("--sweeps", nargs="+", default=list(SWEEPS), choices=list(SWEEPS))
    parser.add_argument("--profile", choices=list(SWEEPS))
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(work(json.loads(options.worker))))
        return
    if options.profile:
        for size in (SWEEPS[options.profile][1][0], SWEEPS[options.profile][1][-1]):
            measure(options.profile, size, profile=1_000)
        return
    from ewsg.lab.folder import Folder

    options.out.parent.mkdir(parents=True, exist_ok=True)
    folder = Folder(options.out, "benchmark growth")
    found = {}
    for name in options.sweeps:
        _, sizes, start, _ = SWEEPS[name]
        points = []
        for size in sizes:
            points.append(folder.part(f"{name} {size}", {"size": size}, lambda n=name, s=size: measure(n, s)))
            point = points[-1]
            time_, memory = 1e6 * point["seconds"], point["peak_bytes"] / 2**20
            print(f"{name:10} {size:>11,}  {time_:9.1f} µs per step  {memory:7.0f} MiB", flush=True)
        found[name] = {"points": points, "fitted_from": start, "exponent": exponent(points, start)}
        print(f"{name:10} exponent {found[name]['exponent']:.3f} from {start:,}")
    folder.finish({"sweeps": found, "time": time.strftime("%Y-%m-%d")})
    draw(found, folder.path / "growth")


if __name__ == "__main__":
    main()
