"""The appendix: convergence of the mean."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from theorems import MU, NUM_CHAINS, NUM_DRAWS, chains

import ewsg
from ewsg import theory
from ewsg.errors import InputError


def test_quadratic_target_is_the_appendix_s():
    target = theory.quadratic_target(MU)
    np.testing.assert_allclose(theory.datum_gradients(target, jnp.array(0.7))[:, 0], 0.7 - MU, rtol=1e-5)
    assert target.full_force(jnp.array(0.7)) == pytest.approx(-0.7, abs=1e-5)
    with pytest.raises(InputError, match="must sum to zero"):
        theory.quadratic_target(MU + 1)
    with pytest.raises(InputError, match="vector of constants"):
        theory.quadratic_target(np.zeros((2, 2)))


@pytest.mark.parametrize("friction", [0.1, 1.0, 1.9])
@pytest.mark.parametrize("step_size", [0.01, 0.05])
def test_contraction_has_the_paper_s_closed_form(step_size, friction):
    radius = theory.contraction(step_size, friction)
    assert radius == pytest.approx(math.sqrt(1 - step_size * friction + step_size**2))
    assert radius < 1


def test_contraction_beyond_critical_friction_and_beyond_stability():
    slow = (3 - math.sqrt(5)) / 2  # the slower rate of λ² + 3λ + 1
    assert theory.contraction(0.1, 3.0) == pytest.approx(1 - 0.1 * slow)
    assert theory.contraction(1.0, 0.5) > 1


def test_mean_trajectory_is_a_matrix_power():
    path = theory.mean_trajectory([1.0, -0.5], 0.1, 0.8, 30)
    power = np.linalg.matrix_power(np.eye(2) + 0.1 * theory.mean_matrix(0.8), 30)
    assert path.shape == (31, 2)
    np.testing.assert_allclose(path[30], power @ [1.0, -0.5])
    with pytest.raises(InputError, match="pair of means"):
        theory.mean_trajectory([1.0], 0.1, 0.8, 30)


def means_of(run: ewsg.Run) -> tuple[np.ndarray, np.ndarray]:
    """E θ at each kept draw, and its standard error."""
    theta = run.draws.astype(float)
    return theta.mean(axis=0), theta.std(axis=0) / math.sqrt(NUM_CHAINS)


def predicted_means(step_size: float, thin: int) -> np.ndarray:
    return theory.mean_trajectory([3.0, 0.0], step_size, 1.0, NUM_DRAWS * thin)[thin::thin, 0]


def test_mean_of_sghmc_follows_the_matrix_power():
    run = chains(step_size=0.1, thin=1)
    means, errors = means_of(run)
    assert np.all(np.abs(means - predicted_means(0.1, thin=1)) < 4.5 * errors + 1e-5)
    momentum = np.diff(run.draws.astype(float), axis=1) / 0.1  # r_k = (θ_{k+1} − θ_k)/h, exactly
    path = theory.mean_trajectory([3.0, 0.0], 0.1, 1.0, NUM_DRAWS)[1:-1, 1]
    assert np.all(np.abs(momentum.mean(axis=0) - path) < 4.5 * momentum.std(axis=0) / math.sqrt(NUM_CHAINS))


def test_mean_of_ewsg_stays_within_first_order_of_it():
    steps, thins, distances, relative = [0.1, 0.05, 0.025], [1, 2, 4], [], []
    for h, thin in zip(steps, thins, strict=True):
        means, errors = means_of(chains(ewsg.Exponential(1, exact=True), 2.0, h, thin))
        distances.append(np.max(np.abs(means - predicted_means(h, thin))))
        relative.append(errors.max() / distances[-1])
        assert relative[-1] < 1 / 6
    lever = np.log(steps) - np.mean(np.log(steps))
    error = np.linalg.norm(lever * relative) / np.sum(lever**2)
    assert theory.fit_slope(steps, distances).value == pytest.approx(1, abs=3 * error + 0.1)


def test_mean_of_ewsg_with_a_short_index_chain_stays_within_the_same_bound():
    h, thin = 0.05, 2
    means, errors = means_of(chains(ewsg.Exponential(1, chain_length=1), 2.0, h, thin))
    distance = np.max(np.abs(means - predicted_means(h, thin)))
    assert 6 * errors.max() < distance < 5 * h
