"""`bnn-cnn`: a convolutional network on MNIST (right column of the table of test errors, learning curve)."""

from ..experiment import Experiment, Outcome, Work
from .report import METHODS, Architecture, compare

CNN = Architecture(
    name="CNN",
    friction=1.0,
    steps={"SGLD": 1.2e-3, "pSGLD": 8e-6, "SGHMC": 2e-3, "CP-SGHMC": 2e-3, "EWSG": 4e-3, "paired (ours)": 4e-3},
    printed={"SGLD": 0.848, "pSGLD": 0.860, "SGHMC": 0.778, "CP-SGHMC": 0.772, "EWSG": 0.753},
    near=0.1,
)


def run(work: Work) -> Outcome:
    """Every method at the printed steps."""
    return compare(work, CNN)


_MNIST = {
    "images": "mnist",
    "channels": [32, 64],
    "hidden": [200, 200],
    "batch": 100,
    "step_factor": 1.0,
    "methods": list(METHODS),
}
EXPERIMENT = Experiment(
    "bnn-cnn",
    "training and test error of a Bayesian convolutional network on MNIST, six methods",
    {
        "smoke": {
            "images": "digits",
            "channels": [4],
            "hidden": [],
            "batch": 20,
            "epochs": 12,
            "step_factor": 20.0,
            "methods": ["SGHMC", "EWSG"],
            "curve_rows": 300,
            "runs": 1,
            "chains": 2,
            "snapshots": 3,
            "averaged": 2,
            "cold": None,
        },
        "laptop": _MNIST  # at the printed steps no chain but pSGLD's leaves its start within two epochs
        | {
            "epochs": 0.7,
            "step_factor": 10.0,
            "curve_rows": 2_000,
            "runs": 1,
            "chains": 3,
            "snapshots": 10,
            "averaged": 4,
            "cold": None,
        },
        "paper": _MNIST
        | {
            "epochs": 200,
            "curve_rows": 10_000,
            "runs": 10,
            "chains": 100,
            "snapshots": 20,
            "averaged": 1,
            "cold": 0.01,
        },
    },
    run,
    heavy=True,
)
