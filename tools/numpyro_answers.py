"""Reference answers for the tests of NumPyro models, by NumPyro's own NUTS in float64.

JAX_ENABLE_X64=1 python tools/numpyro_answers.py

Writes tests/helpers/numpyro_answers.json: per model and site mean and sd, with the smallest effective sample size.
"""

import json
import sys
from pathlib import Path

import jax
import numpy as np
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "helpers"))
import numpyro_models as models  # pyright: ignore[reportMissingImports]


def answer(name: str) -> dict[str, object]:
    """Mean and sd of every site of a model, with the quality of the chains."""
    mcmc = MCMC(
        NUTS(models.MODELS[name]),
        num_warmup=1_000,
        num_samples=5_000,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(0), *models.data(name))
    draws = {site: np.asarray(values, np.float64) for site, values in mcmc.get_samples(group_by_chain=True).items()}
    ess = min(float(np.min(effective_sample_size(values))) for values in draws.values())
    divergences = int(mcmc.get_extra_fields()["diverging"].sum())
    sites = {site: {"mean": v.mean((0, 1)).tolist(), "sd": v.std((0, 1)).tolist()} for site, v in draws.items()}
    return {"ess": ess, "divergences": divergences, "sites": sites}


if __name__ == "__main__":
    found = {name: answer(name) for name in models.MODELS}
    models.ANSWERS.write_text(json.dumps(found, indent=1) + "\n")
    for name, entry in found.items():
        print(name, entry["ess"], entry["divergences"])
