"""docs/coming-from.md runs from top to bottom, but for blocks whose library, or whose door, is not installed."""

import importlib.util
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import ewsg

TEXT = (Path(__file__).parents[2] / "docs/coming-from.md").read_text()
DOORS = {"from_numpyro": hasattr(ewsg.Target, "from_numpyro"), "ewsg.sklearn": "sklearn" in ewsg.__all__}


def is_open(code: str) -> bool:
    """Whether everything that a block imports and uses is there."""
    imported = re.findall(r"^import (\w+)", code, re.MULTILINE)
    needed = [*imported, *(["torchax"] if "torch" in imported else [])]
    return all(map(importlib.util.find_spec, needed)) and all(found for door, found in DOORS.items() if door in code)


@pytest.mark.slow
@pytest.mark.float32
def test_the_page_runs_from_top_to_bottom(capsys):
    names: dict = {"__name__": "coming_from"}
    blocks = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    run = [code for code in blocks if is_open(code)]
    assert len(run) >= len(blocks) - 3  # PyTorch, NumPyro and scikit-learn may be missing
    for code in run:
        with warnings.catch_warnings():
            if "arviz" in code:
                warnings.simplefilter("ignore")
            exec(code, names)
        if "run" in names:
            assert names["run"].ok.all()
    assert "reached" in capsys.readouterr().out  # the verdict
    exact = np.array([0.5, -0.3, 0.2])
    summary = names["run"].draws if not isinstance(names["run"].draws, dict) else names["run"].draws["theta"]
    np.testing.assert_allclose(summary.mean((0, 1)), exact, atol=0.1)
    assert names["found"].mean.shape == (200,)
