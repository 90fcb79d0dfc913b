"""Walker's table: the law that it draws from, enumerated, is the one that it was made for."""

import jax
import numpy as np
import pytest

from ewsg.target.alias import alias_table

RANDOM = np.random.default_rng(0)
LAWS = {
    "random": RANDOM.random(1000),
    "heavy tails": RANDOM.pareto(0.5, 5000) + 1e-9,
    "tiny": RANDOM.random(300) ** 30 + 1e-12,
    "constant": np.full(7, 0.3),
    "constant but for rounding": np.full(999, 1 / 999) * (1 + 1e-16 * np.arange(999)),
    "one heavy": np.append(np.ones(999), 1e6),
    "one light": np.append(np.ones(999), 1e-6),
    "two values": np.repeat([0.5, 1.5], 50),
    "one datum": np.ones(1),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_table_has_the_law(name):
    law = LAWS[name] / LAWS[name].sum()
    keep, other, weight = (np.asarray(part) for part in alias_table(LAWS[name]))
    assert keep.min() >= 0
    assert keep.max() <= 1
    found = keep.astype(np.float64)
    np.add.at(found, other, 1 - keep.astype(np.float64))
    np.testing.assert_allclose(found / len(law), law, rtol=1e-6, atol=1e-6 / len(law))
    np.testing.assert_allclose(weight * len(law) * law, 1, rtol=1e-6)


def test_draws_follow_the_law():
    law = np.array([0.05, 0.4, 0.1, 0.15, 0.3])
    drawn = np.asarray(jax.jit(lambda key: alias_table(law).draw(key, 200_000))(jax.random.key(3)))
    share = np.bincount(drawn, minlength=5) / 200_000
    assert np.abs(share - law).max() < 4.5 * np.sqrt(0.25 / 200_000)
    assert np.corrcoef(drawn[1:], drawn[:-1])[0, 1] == pytest.approx(0, abs=0.01)
