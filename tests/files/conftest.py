"""A small table with every kind of column, and a way to write it to a file."""

import numpy as np
import polars as pl
import pytest

N = 200


@pytest.fixture(scope="session")
def patients() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.normal(45, 12, N).round(1)
    smoker = rng.random(N) < 0.3
    return pl.DataFrame(
        {
            "age": age,
            "year": 1990.0 + rng.integers(0, 30, N),
            "colour": rng.choice(["blue", "green", "red"], N, p=[0.2, 0.3, 0.5]),
            "smoker": smoker,
            "cost": 100 + 3 * age + 20 * smoker + rng.normal(0, 5, N),
            "visits": rng.poisson(np.exp(0.02 * age)),
            "grade": rng.choice(["high", "low", "mid"], N, p=[0.5, 0.2, 0.3]),
            "died": np.where(rng.logistic(size=N) < 0.05 * (age - 45), "yes", "no"),
        }
    )


@pytest.fixture
def write(tmp_path):
    """Write text, bytes or a frame to a file of this name; gives its path."""

    def write(name, content):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content)
        elif path.suffix == ".tsv":
            content.write_csv(path, separator="\t")
        else:
            {".csv": content.write_csv, ".parquet": content.write_parquet, ".feather": content.write_ipc}[path.suffix](
                path
            )
        return path

    return write
