"""What a network is planned from: warm start, curvature, noise; and the rule."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_network import DIMENSION, NUM_DATA, network

import ewsg
from ewsg.planning.networks.rule import Setting, choose, predicted
from ewsg.planning.networks.stiffness import largest_curvature, tilts
from ewsg.planning.networks.warm import warm_start
from ewsg.target.curvature import curvature


class TestMeasurements:
    def test_largest_curvature_is_the_largest_eigenvalue(self):
        target = network()
        position = target.init
        exact = np.linalg.eigvalsh(np.asarray(curvature(target, position), np.float64))
        found, cost = largest_curvature(target, position, np.random.default_rng(0))
        assert found == pytest.approx(exact[-1], rel=1e-3)
        assert cost == 2 * DIMENSION * NUM_DATA

    def test_where_the_density_curves_upwards(self):
        """A negative eigenvalue of larger size is not taken for it."""
        target = ewsg.Target(lambda p, x: 0.05 * p[0] ** 2 - 0.02 * p[1] ** 2 + 0 * x, None, np.zeros(10, np.float32))
        found, _ = largest_curvature(target, jnp.ones(2), np.random.default_rng(0))
        assert found == pytest.approx(10 * 0.04, rel=1e-4)

    def test_tilts_have_the_trace_of_the_covariance(self):
        """E[q²] = 2 Tr Cov(G): 64 times 128 pairs, standard error from their spread."""
        target = network()
        points = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (64, *leaf.shape)), target.init)
        found, cost = tilts(target, points, jax.random.key(0))
        forces = target.forces(target.init, jnp.arange(NUM_DATA))
        trace = sum(float(jnp.sum(jnp.var(leaf, axis=0))) for leaf in jax.tree.leaves(forces))
        squares = (found**2).mean(1)
        assert found.shape == (64, 128)
        assert cost == 64 * 256
        assert abs(squares.mean() - 2 * trace) < 4 * squares.std() / math.sqrt(64)

    def test_warm_start_ends_when_the_loss_has_settled(self):
        target = network()
        starts = jax.tree.map(lambda leaf: np.stack([leaf, leaf]), target.init)
        told = []
        found = warm_start(target, starts, jax.random.key(0), lambda spent: True, lambda *seen: told.append(seen))
        epochs = len(found.potentials)
        assert found.settled
        assert epochs & (epochs - 1) == 0
        assert found.spent == epochs * 2 * 64  # two starts, two minibatches of 32 of the 80 data
        assert told[-1] == (epochs, found.potentials[-1])
        before, now = (np.mean(found.potentials[a:b]) for a, b in ((epochs // 4, epochs // 2), (epochs // 2, epochs)))
        assert before - now < DIMENSION / 4
        end = -float(target.log_density(jax.tree.map(lambda leaf: leaf[0], found.positions)))
        assert end < -float(target.log_density(target.init)) / 2

    def test_warm_start_ends_with_its_share(self):
        starts = jax.tree.map(lambda leaf: np.asarray(leaf)[None], network().init)
        found = warm_start(network(), starts, jax.random.key(0), lambda spent: spent <= 200, lambda *seen: None)
        assert (len(found.potentials), found.spent, found.settled) == (3, 192, False)


class TestRule:
    def test_step_and_friction_follow_the_curvature(self):
        setting, _ = choose(400.0, np.zeros(10), dimension=1_000, num_data=100)
        assert setting == Setting(4, pytest.approx(0.005), pytest.approx(1.4), "weight")
        assert choose(400.0, np.zeros(10), dimension=64, num_data=100)[0].rule == "sequential"

    def test_more_noise_takes_more_data_and_at_last_all(self):
        noise = np.random.default_rng(0).normal(size=4_000)
        found = [choose(400.0, scale * noise, 1_000, 10_000) for scale in (1e3, 1e4, 1e5, 1e7)]
        batches = [setting.batch for setting, _ in found]
        assert batches[0] < batches[1] < batches[2]
        assert batches[3] == 0
        assert all(prediction.bias <= 0.02 for _, prediction in found)
        smaller = found[1][0]._replace(batch=batches[1] // 2)
        assert predicted(1e4 * noise, smaller, 1_000).bias > 0.02

    def test_noise_ratio_is_that_of_the_run(self):
        """ρ = h Tr Cov(force)/(2γd), as the sampler measures it; Monte-Carlo error 6 %, over 24 keys."""
        target = network()
        points = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (256, *leaf.shape)), target.init)
        found, _ = tilts(target, points, jax.random.key(1))
        setting = Setting(8, 1e-3, 2.0, "weight")
        forces = target.forces(target.init, jnp.arange(NUM_DATA))
        trace = sum(float(jnp.sum(jnp.var(leaf, axis=0))) for leaf in jax.tree.leaves(forces)) / 8
        assert predicted(found, setting, DIMENSION).noise_ratio == pytest.approx(
            1e-3 * trace / (2 * 2.0 * DIMENSION), rel=0.25
        )
