"""Models of posteriordb, nothing set: `ewsg.sample(target, accuracy=0.05)` against long runs of NUTS.

    python benchmarks/posteriordb.py [--out FOLDER] [--models nes ...] [--seeds 30 31 32]

Per model and seed: the verdict, the share of all means and sds within 0.05 of the reference (of the unconstrained
parameters, for which the promise is made; in results.json also of the model's own), and what it cost; or why there is
no plan. References are `ewsg.reference.nuts` in double precision, in coordinates whitened at the mode, run until no
standard error of a mean or sd exceeds 0.015 posterior sd; kept beside FOLDER. An interrupted benchmark goes on where it
stopped.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import promise
from posteriordb_models import MODELS, Model

import ewsg
from ewsg._core import ess
from ewsg.lab.folder import Folder

HERE = Path(__file__).parent
_TWINS = {"radon, centred": "radon, not centred"}
"""Models whose reference is another's, seen through its constrained parameters."""
_LARGEST_ERROR = 0.015
_DRAWS, _MOST_DRAWS = 5_000, 80_000


def reference(name: str, folder: Path) -> dict[str, np.ndarray]:
    """Means and sds, constrained and not, from NUTS: made once, in a process of its own with 64 bits."""
    path = folder / f"reference-{name.replace(', ', '-').replace(' ', '-')}.npz"
    if not path.exists():
        command = [sys.executable, __file__, "--reference", name, str(path)]
        subprocess.run(command, check=True, env=os.environ | {"JAX_ENABLE_X64": "1"})
    return dict(np.load(path))


def make_reference(name: str, path: Path) -> None:
    """Four chains of NUTS, longer and longer until every mean and sd is known to 0.015 sd."""
    model, began = MODELS[_TWINS.get(name, name)](), time.perf_counter()
    init = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), model.init)
    mode = ewsg.find_mode(model.target, init, method="newton")
    values, vectors = np.linalg.eigh(np.asarray(mode.precision, np.float64))
    root = vectors / np.sqrt(np.maximum(values, 1e-3 * np.median(values)))
    center = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), mode.position)
    coordinates = ewsg.coordinates.Dense(center, root)
    whitened = model.target.in_coordinates(coordinates)
    place = jax.jit(jax.vmap(jax.vmap(coordinates.place)))
    length = _DRAWS
    while True:
        found = ewsg.reference.nuts(whitened, np.zeros(len(root)), num_draws=length, progress=False)
        free = place(found.draws)
        own = jax.vmap(jax.vmap(model.constrain))(free)
        if name in _TWINS:  # the centred model's own parameters, unconstrained
            free = {key: own[key] for key in ("alpha", "beta", "mu")}
            free |= {f"log_{key}": np.log(own[key]) for key in ("sigma_alpha", "sigma_y")}
        error = max(_largest_error(free), _largest_error(own))
        if error <= _LARGEST_ERROR or length >= _MOST_DRAWS:
            break
        length *= 2
    moments = {}
    for kind, draws in (("free", free), ("own", own)):
        flat = ewsg.diagnostics.flatten(draws)
        moments |= {f"{kind}_mean": flat.mean((0, 1)), f"{kind}_sd": flat.std((0, 1))}
        moments[f"{kind}_skew"] = ((flat - flat.mean((0, 1))) ** 3).mean((0, 1)) / flat.std((0, 1)) ** 3
    facts = {"error": error, "ess": found.ess, "divergences": found.divergences, "draws": 4 * length}
    np.savez(path, **moments, **facts, seconds=time.perf_counter() - began)


def _largest_error(draws) -> float:
    """The largest standard error of a mean or an sd, in sd."""
    flat = ewsg.diagnostics.flatten(draws)
    squares = (flat - flat.mean((0, 1))) ** 2
    of_sd = squares.std((0, 1)) / (2 * squares.mean((0, 1)) * np.sqrt(ess.ess(squares)))
    return float(max((1 / np.sqrt(ess.ess(flat))).max(), of_sd.max()))


def measure(model: Model, answer: dict[str, np.ndarray], seed: int) -> dict:
    """One run, as in promise.py; and how far the model's own parameters are from the reference."""
    constrain = jax.jit(jax.vmap(jax.vmap(model.constrain)))
    both = {}

    def seen(draws):
        both["own"] = ewsg.diagnostics.flatten(constrain(draws))
        return draws

    case = promise.Case(model.target, model.init, seen, answer["free_mean"], answer["free_sd"])
    cpu = time.process_time()
    row = promise.measure(case, seed) | {"cpu_seconds": time.process_time() - cpu}
    if "own" in both:
        means = (both["own"].mean((0, 1)) - answer["own_mean"]) / answer["own_sd"]
        sds = both["own"].std((0, 1)) / answer["own_sd"] - 1
        own = np.abs(np.concatenate([means, sds]))
        row |= {"own_numbers": len(own), "own_within": int((own <= 0.05).sum()), "own_largest_error": float(own.max())}
    return row


def table(found: dict[str, list[dict]], shapes: dict[str, tuple[int, int]]) -> str:
    """One row per model, in Markdown, and the sentences of those without a plan."""
    lines = [
        "| model | n | d | reached | means and sds within 0.05 | largest error of a mean | of an sd | passes "
        "| of these, plan | CPU seconds |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    sentences = []
    for name, rows in found.items():
        n, d = shapes[name]
        row = promise.total(rows)
        seconds = np.median([one["cpu_seconds"] for one in rows])
        head = f"| {name} | {n:,} | {d} | {row['reached']} of {row['runs']} "
        sentences += sorted({f"{name}: {one['why']}" for one in rows if "why" in one})
        if not row["numbers"]:
            lines.append(head + f"| - | - | - | - | - | {seconds:.0f} |")
            continue
        share = 100 * row["within"] / row["numbers"]
        lines.append(
            head + f"| {row['within']} of {row['numbers']} ({share:.1f} %) | {row['largest_mean_error']:.3f} "
            f"| {row['largest_sd_error']:.3f} | {row['passes']:,.0f} | {row['plan_passes']:,.0f} | {seconds:.0f} |"
        )
    return "\n".join([*lines, "", *sentences, ""])


def main() -> None:
    """Runs what is missing; writes results.json and table.md."""
    if sys.argv[1:2] == ["--reference"]:
        make_reference(sys.argv[2], Path(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "build" / "posteriordb")
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[30, 31, 32])
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    folder = Folder(options.out, "benchmark posteriordb")
    found: dict[str, list[dict]] = {}
    shapes, references = {}, {}
    for name in options.models:
        model, answer = MODELS[name](), reference(name, options.out.parent)
        shapes[name] = model.target.num_data, len(answer["free_mean"])
        keys = ("error", "ess", "divergences", "draws", "seconds")
        skew = float(np.abs(answer["free_skew"]).max())
        references[name] = {key: float(answer[key]) for key in keys} | {"largest_skew": skew}
        print(f"{name}: {references[name]}", flush=True)
        for seed in options.seeds:
            row = folder.part(name, {"seed": seed}, lambda m=model, a=answer, s=seed: measure(m, a, s))
            print(promise.line(name, seed, row), flush=True)
            found.setdefault(name, []).append({"seed": seed, **row})
    totals = {name: promise.total(rows) for name, rows in found.items()}
    folder.finish({"references": references, "rows": found, "totals": totals, "time": time.strftime("%Y-%m-%d")})
    text = table(found, shapes)
    (folder.path / "table.md").write_text(text, encoding="utf-8")
    print("\n" + text)


if __name__ == "__main__":
    main()
