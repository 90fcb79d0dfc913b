"""`bnn-mlp`: a network with one hidden layer on MNIST (left column of the table of test errors, learning curve)."""

from ..experiment import Experiment, Outcome, Work
from .report import METHODS, Architecture, compare

MLP = Architecture(
    name="MLP",
    friction=0.1,
    steps={"SGLD": 6e-3, "pSGLD": 1e-4, "SGHMC": 2e-3, "CP-SGHMC": 2e-3, "EWSG": 4e-3, "paired (ours)": 4e-3},
    printed={"SGLD": 1.976, "pSGLD": 1.821, "SGHMC": 1.833, "CP-SGHMC": 1.835, "EWSG": 1.793},
    near=0.2,
)


def run(work: Work) -> Outcome:
    """Every method at the printed steps."""
    return compare(work, MLP)


_MNIST = {
    "images": "mnist",
    "hidden": [100],
    "batch": 100,
    "epochs": 200,
    "step_factor": 1.0,
    "methods": list(METHODS),
    "curve_rows": 10_000,
}
EXPERIMENT = Experiment(
    "bnn-mlp",
    "training and test error of a Bayesian network with one hidden layer on MNIST, six methods",
    {
        "smoke": {
            "images": "digits",
            "hidden": [16],
            "batch": 20,
            "epochs": 20,
            "step_factor": 10.0,
            "methods": ["SGLD", "SGHMC", "EWSG", "paired (ours)"],
            "curve_rows": 500,
            "runs": 1,
            "chains": 2,
            "snapshots": 5,
            "averaged": 3,
            "cold": 0.01,
        },
        "laptop": _MNIST | {"runs": 1, "chains": 3, "snapshots": 40, "averaged": 20, "cold": 0.01},
        "paper": _MNIST | {"runs": 10, "chains": 100, "snapshots": 20, "averaged": 1, "cold": 0.01},
    },
    run,
    heavy=True,
)
