"""What is done for the CPU is done nowhere else; where a computation will run is asked of JAX's default device."""

import jax
import jax.numpy as jnp
import pytest

from ewsg import _random
from ewsg._core import compiler, convolution, pytree
from ewsg.target.likelihood import PerDatum


def primitives(function, *args) -> set[str]:
    """Of a fresh function, which JAX has not traced before for another platform."""
    return {eqn.primitive.name for eqn in jax.make_jaxpr(lambda *args: function(*args))(*args).eqns}


@pytest.fixture
def gpu(monkeypatch):
    """As if computations ran on a GPU."""
    monkeypatch.setattr(compiler, "platform", lambda: "gpu")
    monkeypatch.setattr(convolution, "platform", lambda: "gpu")


def test_the_default_device_decides_where_computations_run(monkeypatch):
    assert compiler.platform() == jax.default_backend()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert compiler.platform() == "gpu"
    with jax.default_device(jax.devices("cpu")[0]):
        assert compiler.platform() == "cpu"
    with jax.default_device("cpu"):
        assert compiler.platform() == "cpu"
    assert compiler.options(True) == {}


def test_generator_rewriting_and_options_follow_the_default_device(monkeypatch):
    """Seen before: on a machine with a GPU, runs on its CPU got none of what is fast there."""

    def found():
        rewriting = convolution.fast_here(found) is not found
        return _random.default_generator(), rewriting, "cond" in primitives(compiler.stored, jnp.ones(8))

    cpu = jax.devices("cpu")[0]
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert found() == ("threefry", False, False)
    assert compiler.options(True) == {}
    with jax.default_device(cpu):
        assert found() == ("fast", True, True)
        assert compiler.options(True) == compiler._cpu_options(True)


def test_the_cpu_gets_its_barriers():
    rows = jnp.ones((8, 2))
    assert "cond" in primitives(compiler.stored, rows)
    assert "optimization_barrier" in primitives(compiler.times_one, rows)


@pytest.mark.usefixtures("gpu")
def test_other_platforms_get_none():
    rows = jnp.ones((8, 2))
    assert primitives(compiler.stored, rows) == primitives(compiler.times_one, rows) == set()
    assert "cond" not in primitives(lambda tree: pytree.dot(tree, tree), jnp.ones(10_000))
    assert compiler.options(True) == compiler.options(False) == {}


@pytest.mark.usefixtures("gpu")
def test_convolutions_are_left_alone_elsewhere():
    def log_likelihood(kernel, image):
        return jnp.sum(jax.lax.conv(image[None, None], kernel[None, None], (1, 1), "VALID"))

    assert "conv_general_dilated" in primitives(PerDatum(log_likelihood), jnp.ones((2, 2)), jnp.ones((4, 4)))


@pytest.mark.parametrize(
    ("text", "wide"),
    [
        ("flags\t\t: fpu avx2 avx512f\n", True),
        ("flags\t: fpu avx2\n", False),
        ("Features: asimd\n", False),
        (None, False),
    ],
)
def test_wide_vectors_only_where_the_processor_has_them(tmp_path, monkeypatch, text, wide):
    if text is not None:
        (tmp_path / "cpuinfo").write_text(text)
    monkeypatch.setattr(compiler, "_PROCESSOR", tmp_path / "cpuinfo")
    assert compiler._has_wide_vectors.__wrapped__() is wide
    monkeypatch.setattr(compiler, "_has_wide_vectors", lambda: wide)
    assert ("xla_cpu_prefer_vector_width" in compiler._cpu_options.__wrapped__(False)) is wide
