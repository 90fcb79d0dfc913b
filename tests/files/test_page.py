"""docs/files.md, from top to bottom: its code runs, and its command prints what it shows."""

import re
from pathlib import Path

import numpy as np

from ewsg import files

PAGE = Path(__file__).parents[2] / "docs" / "files.md"


def test_the_page_on_data_files_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    first, second = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    exec(first, {})
    shown = re.search(r"^\$ ewsg sample [^\n]*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert shown is not None
    understood, coefficients, _ = shown[1].split("\n\n")
    assert str(files.read("patients.csv", "died")) == understood
    names = {}
    exec(second, names)
    table, found = names["table"], names["table"].coefficients(names["run"])
    rows = [line.split() for line in coefficients.splitlines()[1:]]
    assert [row[0] for row in rows] == list(found.names)
    for row, mean, sd in zip(rows, found.table["mean"], found.table["sd"], strict=True):
        assert abs(float(row[1]) - mean) < 0.3 * sd  # another accuracy, and rounded
        np.testing.assert_allclose(float(row[2]), sd, rtol=0.2)
    assert np.isfinite(names["log_odds"]).sum() == table.rows
    assert files.check("patients.csv").num_bad_rows == 486
