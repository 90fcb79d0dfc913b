import jax

from ewsg.cli import canary


def test_compiled_chains_equal_eager_ones():
    assert canary.mismatch() == 0.0


def test_in_float32_even_when_x64_is_on():
    with jax.enable_x64(True):
        assert canary.mismatch(chains=100, steps=2) == 0.0
        assert jax.numpy.zeros(()).dtype == "float64"


def test_accept_tests_blind_to_the_momentum_are_noticed(monkeypatch):
    """What jaxlib 0.10.2 does, imitated: the compiled chain runs with beta = 0."""
    compile = jax.jit

    def miscompile(chain, static_argnums):
        compiled = compile(chain, static_argnums=static_argnums)
        return lambda h, gamma, length, alpha, beta, kappa, key: compiled(
            h, gamma, length, alpha, 0.0 * beta, kappa, key
        )

    monkeypatch.setattr(jax, "jit", miscompile)
    assert canary.mismatch(chains=1_000) > 0.1
