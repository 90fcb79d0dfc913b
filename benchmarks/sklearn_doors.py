"""Regressors with intervals on held-out data: error, coverage of 90 % intervals, CPU seconds, rows.

    python benchmarks/sklearn_doors.py [--sides linear ridge mlp] [--splits 20] [--data concrete] [--json FILE]
        [--limit 60] [--python statsmodels=PATH --python bde=PATH]
    python benchmarks/sklearn_doors.py --padding 130 1025

`linear` and `mlp` are ewsg's BayesianLinearRegression and BayesianMLPRegressor, `ridge` scikit-learn's BayesianRidge,
`statsmodels` its OLS, `bde` the ensemble of sampled networks of sklearn-contrib-bde. A side with a Python of its own
runs there, where ewsg need not be installed. All see the same splits, 90 % of the rows for fitting, and standardised
features and responses.

Coverage is the share of held-out responses inside central 90 % intervals, over all splits; its error is that of as many
independent responses. Seconds are CPU seconds per split, fit and prediction: those of the first split, which compiles,
and the median of the others. Rows: the largest of 10^4, 10^5, ... simulated rows (8 features) for which one fit takes
less than `--limit` CPU seconds, and the seconds it takes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

_LEVEL = 0.9
_SIDES = ("linear", "ridge", "statsmodels", "mlp", "bde")
_TALL = (10_000, 100_000, 1_000_000)


def linear(x, y, new):
    """ewsg's linear regression at its defaults."""
    from ewsg.sklearn import BayesianLinearRegression

    model = BayesianLinearRegression(random_state=0).fit(x, y)
    return model.predict(new), model.predict_interval(new, _LEVEL)


def mlp(x, y, new):
    """ewsg's network at its defaults: 32 hidden units, 8 chains, 500 passes over the data."""
    from ewsg.sklearn import BayesianMLPRegressor

    model = BayesianMLPRegressor(random_state=0).fit(x, y)
    return model.predict(new), model.predict_interval(new, _LEVEL)


def ridge(x, y, new):
    """scikit-learn's BayesianRidge: mean and sd of a normal distribution."""
    from scipy.stats import norm
    from sklearn.linear_model import BayesianRidge

    mean, std = BayesianRidge().fit(x, y).predict(new, return_std=True)
    half = norm.ppf((1 + _LEVEL) / 2) * std
    return mean, np.stack([mean - half, mean + half], axis=1)


def statsmodels(x, y, new):
    """Ordinary least squares: Student's t intervals of observations."""
    import statsmodels.api as api

    found = api.OLS(y, np.c_[np.ones(len(x)), x]).fit().get_prediction(np.c_[np.ones(len(new)), new])
    return found.predicted_mean, found.conf_int(obs=True, alpha=1 - _LEVEL)


def bde(x, y, new):
    """Eight networks of 32 hidden units, trained and then sampled; responses have a noise scale of their own each."""
    from bde import BdeRegressor

    model = BdeRegressor(
        n_members=8,
        hidden_layers=[32],
        epochs=500,
        patience=20,
        warmup_steps=1_000,
        n_samples=100,
        n_thinning=10,
    ).fit(x, y)
    mean, ends = model.predict(new, credible_intervals=[(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return np.asarray(mean), np.asarray(ends).T


def measure(side: str, x: np.ndarray, y: np.ndarray, splits: int, limit: float) -> dict:
    """Errors, coverage and seconds of one side."""
    fit = globals()[side]
    errors, inside, seconds = [], [], []
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(x))
        train, test = np.split(order, [int(0.9 * len(x))])
        mean, scale = x[train].mean(0), x[train].std(0)
        center, unit = y[train].mean(), y[train].std()
        began = time.process_time()
        found, ends = fit((x[train] - mean) / scale, (y[train] - center) / unit, (x[test] - mean) / scale)
        seconds.append(time.process_time() - began)
        wanted = (y[test] - center) / unit
        errors.append(unit * np.sqrt(np.mean((found - wanted) ** 2)))
        inside += ((ends[:, 0] <= wanted) & (wanted <= ends[:, 1])).tolist()
    result = {
        "splits": splits,
        "rmse": float(np.mean(errors)),
        "coverage": float(np.mean(inside)),
        "coverage_error": float(np.sqrt(_LEVEL * (1 - _LEVEL) / len(inside))),
        "first_seconds": seconds[0],
        "seconds": float(np.median(seconds[1:])) if splits > 1 else seconds[0],
    }
    return result | (most_rows(fit, limit) if limit > 0 else {})


def most_rows(fit, limit: float) -> dict:
    """The largest number of simulated rows that one fit takes within the limit."""
    found = {"rows": 0, "rows_seconds": 0.0}
    for count in _TALL:
        rng = np.random.default_rng(0)
        x = rng.normal(size=(count, 8))
        y = x @ rng.normal(size=8) / 4 + rng.normal(size=count) / 2
        began = time.process_time()
        fit(x, y, x[:100])
        seconds = time.process_time() - began
        if seconds > limit:
            return found | {"next_seconds": seconds}
        found = {"rows": count, "rows_seconds": seconds}
        if seconds * (10 if seconds > 1 else 1) > 4 * limit:  # the next would take minutes
            break
    return found


def padding(num_rows: int, seeds: int = 5) -> dict:
    """Datum gradients of planned logistic regressions: rows as they are, padded by copies, or by rows of weight 0."""
    import dataclasses

    import ewsg
    from ewsg.sklearn import BayesianLogisticRegression, _rows

    rng = np.random.default_rng(0)
    x = rng.normal(size=(num_rows, 3))
    y = (x[:, 0] + rng.logistic(size=num_rows) > 0).astype(int)
    rows, padded = _rows.merged(x, y, np.ones(num_rows)), _rows.padded

    def cut(*args, **options):
        data = padded(*args, **options)
        return _rows.Padded(data.places[:num_rows], np.ones(num_rows, "float32"), data.matrix[:num_rows].copy())

    def idle(*args, **options):
        data = padded(*args, **options)
        return dataclasses.replace(data, weights=(np.arange(len(data.places)) < num_rows).astype("float32"))

    found = {}
    for name, make in {"as they are": cut, "copies": padded, "weight 0": idle}.items():
        sys.modules["ewsg.sklearn.logistic"].padded = make
        costs = []
        for seed in range(seeds):
            model = BayesianLogisticRegression()
            model.classes_ = np.arange(2)
            run = ewsg.sample(model._posterior(rows, seed)[0], seed=seed, progress=False)
            costs.append(run.cost.datum_gradients)
        found[name] = {"rows": len(make(rows, _rows.units_of(rows), ones=True).places), "gradients": np.mean(costs)}
    sys.modules["ewsg.sklearn.logistic"].padded = padded
    return found


def elsewhere(python: str, side: str, x: np.ndarray, y: np.ndarray, splits: int, limit: float) -> dict:
    """The same, in another Python."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data.npz"
        np.savez(data, x=x, y=y)
        command = [
            python,
            __file__,
            "--only",
            side,
            "--file",
            str(data),
            "--splits",
            str(splits),
            "--limit",
            str(limit),
        ]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sides", nargs="+", choices=_SIDES, default=list(_SIDES[:2]))
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--data", default="concrete")
    parser.add_argument("--limit", type=float, default=0.0, help="CPU seconds of one fit to many rows; 0 skips that")
    parser.add_argument(
        "--padding", type=int, nargs="*", default=[], metavar="ROWS", help="cost of padding so many rows"
    )
    parser.add_argument("--python", action="append", default=[], metavar="SIDE=PATH")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=_SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.only:
        with np.load(options.file) as data:
            print(json.dumps(measure(options.only, data["x"], data["y"], options.splits, options.limit)))
        return
    import ewsg

    for count in options.padding:
        for name, one in padding(count).items():
            print(f"{count:>6} rows, {name:<12} {one['rows']:>6} places {one['gradients']:>12,.0f} datum gradients")
    if options.padding:
        return
    table = ewsg.datasets.load(options.data)
    x, y = np.asarray(table.features, np.float64), np.asarray(table.labels, np.float64)
    pythons = dict(item.split("=", 1) for item in options.python)
    results = {}
    print(f"{options.data}: {x.shape[0]} rows, {x.shape[1]} features\n")
    print(
        f"{'side':<12} {'splits':>6} {'RMSE':>7} {'coverage':>16} {'first s':>8} {'then s':>7} {'rows':>10} {'in s':>6}"
    )
    for side in options.sides:
        python = pythons.get(side)
        arguments = (side, x, y, options.splits, options.limit)
        found = results[side] = elsewhere(python, *arguments) if python else measure(*arguments)
        coverage = f"{100 * found['coverage']:.1f} ± {100 * found['coverage_error']:.1f} %"
        rows = f"{found['rows']:>10,} {found['rows_seconds']:>6.1f}" if "rows" in found else ""
        times = f"{found['first_seconds']:>8.2f} {found['seconds']:>7.2f}"
        print(f"{side:<12} {found['splits']:>6} {found['rmse']:>7.3f} {coverage:>16} {times} {rows}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
