"""Networks as targets: the same posterior as a handwritten one, parameters that come back, and every refusal."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from networks import NnxMlp, equinox_mlp, nnx

import ewsg
from ewsg.errors import InputError
from ewsg.modules import cross_entropy, function_of, parameters, restore

IMAGES = np.random.default_rng(0).normal(size=(12, 6, 6)).astype(np.float32)
LABELS = (np.arange(12) % 3).astype(np.int32)


def equinox_cnn(key):
    one, two = jax.random.split(key)
    layers = [eqx.nn.Conv2d(1, 2, 3, padding=1, key=one), eqx.nn.Lambda(jax.nn.relu), eqx.nn.MaxPool2d(2, 2)]
    return eqx.nn.Sequential([*layers, eqx.nn.Lambda(jnp.ravel), eqx.nn.Linear(18, 3, key=two)])


class NnxCnn(nnx.Module):
    def __init__(self, rngs):
        self.one = nnx.Conv(1, 2, (3, 3), rngs=rngs)
        self.two = nnx.Linear(18, 3, rngs=rngs)

    def __call__(self, x):
        x = nnx.max_pool(nnx.relu(self.one(x)), (2, 2), (2, 2))
        return self.two(x.reshape(x.shape[0], -1))


def handwritten(layout):
    """(params, datum) -> log-likelihood, from the arrays alone."""

    def dense(weight, bias, x):
        return (weight @ x if layout == "equinox" else x @ weight) + bias.reshape(-1)

    def mlp(w, x):
        return dense(w[2], w[3], jax.nn.relu(dense(w[0], w[1], x)))

    def cnn(w, x):
        image = x[0] if layout == "equinox" else x[..., 0]
        kernel = w[0][:, 0] if layout == "equinox" else jnp.moveaxis(w[0][:, :, 0], -1, 0)
        padded = jnp.pad(image, 1)
        patches = jnp.stack([padded[i : i + 6, j : j + 6] for i in range(3) for j in range(3)])
        seen = jnp.einsum("kij,ck->cij", patches, kernel.reshape(2, 9)) + w[1].reshape(2, 1, 1)
        pooled = jax.nn.relu(seen).reshape(2, 3, 2, 3, 2).max((2, 4))
        flat = pooled.ravel() if layout == "equinox" else jnp.moveaxis(pooled, 0, -1).ravel()
        return dense(w[2], w[3], flat)

    return {"mlp": mlp, "cnn": cnn}


CASES = {
    "equinox mlp": (
        lambda: equinox_mlp(jax.random.key(1)),
        IMAGES.reshape(12, 36),
        ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"],
    ),
    "equinox cnn": (
        lambda: equinox_cnn(jax.random.key(1)),
        IMAGES.reshape(12, 1, 6, 6),
        ["layers.0.weight", "layers.0.bias", "layers.4.weight", "layers.4.bias"],
    ),
    "nnx mlp": (
        lambda: NnxMlp(nnx.Rngs(1)),
        IMAGES.reshape(12, 36),
        ["one.kernel", "one.bias", "two.kernel", "two.bias"],
    ),
    "nnx cnn": (
        lambda: NnxCnn(nnx.Rngs(1)),
        IMAGES.reshape(12, 6, 6, 1),
        ["one.kernel", "one.bias", "two.kernel", "two.bias"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_posterior_is_the_handwritten_one(case):
    make, inputs, names = CASES[case]
    layout, kind = case.split()
    module = make()
    params = parameters(module)
    assert sorted(params) == sorted(names)
    logits = handwritten(layout)[kind]

    def log_likelihood(params, datum):
        x, label = datum
        return jax.nn.log_softmax(logits([params[name] for name in names], x))[label]

    theirs = ewsg.Target(log_likelihood, ewsg.modules.standard_normal, (inputs, LABELS))
    ours = ewsg.Target.from_module(module, cross_entropy, (inputs, LABELS))
    rng = np.random.default_rng(2)
    place, direction = (
        {name: jnp.asarray(rng.normal(size=leaf.shape), jnp.float32) for name, leaf in params.items()} for _ in range(2)
    )
    batch = jnp.array([3, 0, 3, 7])

    @jax.jit
    def everything(target):
        along = target.directional(place, batch, direction)
        return target.log_density(place), along, target.force(place, batch)

    for one, other in zip(everything(ours), everything(theirs), strict=True):
        assert jax.tree.structure(one) == jax.tree.structure(other)
        scale = max(float(np.max(np.abs(leaf))) for leaf in jax.tree.leaves(other))
        jax.tree.map(lambda a, b, s=scale: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * s), one, other)


@pytest.mark.parametrize("case", CASES)
def test_parameters_come_back(case):
    make, inputs, _ = CASES[case]
    inputs = np.asarray(inputs, jnp.result_type(float))  # Equinox' convolutions want the dtype of their weights
    module = make()
    params = parameters(module)
    doubled = restore(module, {name: 2 * leaf for name, leaf in params.items()})
    assert type(doubled) is type(module)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, 2 * b), parameters(doubled), params)
    jax.tree.map(np.testing.assert_array_equal, parameters(module), params)
    outputs = jax.vmap(doubled)(inputs) if case.startswith("equinox") else doubled(jnp.asarray(inputs))
    ours = jax.vmap(function_of(module), in_axes=(None, 0))(parameters(doubled), inputs)
    np.testing.assert_allclose(ours, outputs, rtol=1e-5, atol=1e-5)
    with pytest.raises(InputError, match=r"do not belong to this module: give a dict with the names"):
        restore(module, {"w": params[next(iter(params))]})


def test_draws_of_a_run_are_saved_resumed_and_put_back(tmp_path):
    module = nnx.Linear(36, 3, rngs=nnx.Rngs(1))
    target = ewsg.Target.from_module(module, cross_entropy, (IMAGES.reshape(12, 36), LABELS))
    method = ewsg.recipes.sghmc(4, 1e-2, 1.0)
    options = {"init": parameters(module), "num_chains": 2, "discard": 0, "thin": 5, "progress": False}
    whole = ewsg.sample(target, method, num_steps=20, **options)
    part = ewsg.sample(target, method, num_steps=10, **options)
    part.save(tmp_path / "run.npz")
    again = ewsg.resume(tmp_path / "run.npz", target, num_steps=10)
    assert sorted(again.draws) == ["bias", "kernel"]
    jax.tree.map(np.testing.assert_array_equal, again.draws, whole.draws)
    assert whole.summary().parameters["parameter"][0] == "bias[0]"
    last = jax.tree.map(lambda leaf: leaf[1, -1], whole.draws)
    np.testing.assert_array_equal(restore(module, last).bias[...], whole.draws["bias"][1, -1])


def test_a_random_start_of_every_chain():
    keys = jax.random.split(jax.random.key(0), 2)
    starts = jax.jit(jax.vmap(lambda key: parameters(NnxMlp(nnx.Rngs(key)))))(keys)
    for name, leaf in starts.items():
        assert leaf.shape[0] == 2
        assert "bias" in name or not np.allclose(leaf[0], leaf[1])


def test_only_floating_point_arrays_are_sampled():
    class Scaled(eqx.Module):
        weight: jax.Array
        shift: float = eqx.field(static=True)
        table: jax.Array

        def __call__(self, x):
            return self.weight * x + self.shift + self.table.astype(x.dtype)

    module = Scaled(jnp.ones(3), 2.0, jnp.arange(3))
    target = ewsg.Target.from_module(module, lambda out, y: jnp.sum((out - y) ** 2), (np.ones((4, 3), np.float32),) * 2)
    params = parameters(module)
    assert list(params) == ["weight"]
    assert float(target.log_density(params)) == pytest.approx(-4 * (4 + 9 + 16) - 1.5)
    np.testing.assert_array_equal(restore(module, {"weight": jnp.zeros(3)}).table, [0, 1, 2])


def test_a_prior_of_ones_own():
    module, (_, inputs, _) = equinox_mlp(jax.random.key(0)), CASES["equinox mlp"]
    data = (inputs, LABELS)
    flat = ewsg.Target.from_module(module, cross_entropy, data, log_prior=lambda p: 7.0 + 0 * p["layers.0.bias"][0])
    params = parameters(module)
    normal = ewsg.Target.from_module(module, cross_entropy, data)
    squares = sum(float(jnp.sum(leaf**2)) for leaf in params.values())
    assert float(flat.log_density(params) - normal.log_density(params)) == pytest.approx(7 + squares / 2, rel=1e-4)


class WithRngs(nnx.Module):
    def __init__(self):
        self.rngs = nnx.Rngs(0)
        self.linear = nnx.Linear(36, 3, rngs=self.rngs)

    def __call__(self, x):
        return self.linear(x) + self.rngs.normal((3,))


def nnx_sequence(*layers):
    return nnx.Sequential(nnx.Linear(36, 3, rngs=nnx.Rngs(0)), *layers)


def equinox_sequence(*layers):
    return eqx.nn.Sequential([eqx.nn.Linear(36, 3, key=jax.random.key(0)), *layers])


REFUSED = {
    "equinox batch norm": (lambda: equinox_sequence(eqx.nn.BatchNorm(3, "batch", mode="ema")), "batch statistics"),
    "equinox dropout": (lambda: equinox_sequence(eqx.nn.Dropout(0.3)), r"dropout.*eqx.nn.inference_mode\(module\)"),
    "nnx batch norm": (lambda: nnx_sequence(nnx.BatchNorm(3, rngs=nnx.Rngs(0))), r"batch statistics \(BatchStat\)"),
    "nnx dropout": (lambda: nnx_sequence(nnx.Dropout(0.3, rngs=nnx.Rngs(0))), r"dropout.*module.eval\(\)"),
    "nnx stream": (WithRngs, "draws random numbers"),
    "no parameters": (lambda: eqx.nn.Lambda(jax.nn.relu), "Lambda has no parameters"),
    "a function": (lambda: jax.nn.relu, "takes a module of Equinox, Flax NNX or PyTorch"),
    "not callable": (lambda: ewsg.Target(lambda p, x: p * x, None, np.ones(3, np.float32)), "cannot be called"),
    "wrong input": (lambda: eqx.nn.Linear(35, 3, key=jax.random.key(0)), r"module\(input\) of one datum failed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_posterior_is_refused(case):
    make, message = REFUSED[case]
    with pytest.raises(InputError, match=message) as error:
        ewsg.Target.from_module(make(), cross_entropy, (IMAGES.reshape(12, 36), LABELS))
    assert "\n" not in str(error.value)
    if "batch" in message or "dropout" in message:
        assert "the log posterior is a sum over data" in str(error.value)


def test_dropout_that_is_switched_off_is_allowed():
    data = (IMAGES.reshape(12, 36), LABELS)
    off = nnx_sequence(nnx.Dropout(0.3, rngs=nnx.Rngs(0)))
    off.eval()
    plain = nnx_sequence()
    one, other = (ewsg.Target.from_module(module, cross_entropy, data) for module in (off, plain))
    assert float(one.log_density(parameters(off))) == float(other.log_density(parameters(plain)))
    for dropout in (eqx.nn.Dropout(0.3, inference=True), eqx.nn.Dropout(0.0)):
        ewsg.Target.from_module(equinox_sequence(dropout), cross_entropy, data)


@pytest.mark.parametrize(
    ("loss", "data", "message"),
    [
        (lambda out, y: out, (IMAGES.reshape(12, 36), LABELS), r"must return one real scalar, not \(3,\)"),
        (lambda out, y: jnp.argmax(out), (IMAGES.reshape(12, 36), LABELS), "must return one real scalar"),
        (lambda out, y: out @ out @ out, (IMAGES.reshape(12, 36), LABELS), "loss.output, target. of one datum failed"),
        ("mse", (IMAGES.reshape(12, 36), LABELS), "loss must be a function"),
        (cross_entropy, IMAGES, r"must be a pair \(inputs, targets\)"),
        (cross_entropy, (IMAGES, LABELS, LABELS), r"must be a pair \(inputs, targets\)"),
        (cross_entropy, (IMAGES.reshape(12, 36), LABELS[:5]), "leading axes of data disagree"),
    ],
)
def test_losses_and_data_are_checked(loss, data, message):
    with pytest.raises(InputError, match=message):
        ewsg.Target.from_module(eqx.nn.Linear(36, 3, key=jax.random.key(0)), loss, data)


def test_cross_entropy():
    logits = jnp.array([0.3, -1.0, 2.0])
    exact = -np.log(np.exp(2.0) / np.exp(np.array([0.3, -1.0, 2.0])).sum())
    assert float(cross_entropy(logits, jnp.int32(2))) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("labels", [[1, 2, 3], [0, 1, -1]])
def test_labels_that_are_no_classes_are_refused(labels):
    module = eqx.nn.Linear(2, 3, key=jax.random.key(0))
    data = np.ones((3, 2), np.float32), np.array(labels)
    with pytest.raises(
        InputError, match=r"labels run from -?\d to \d, but the module has 3 outputs: classes are 0 to 2"
    ):
        ewsg.Target.from_module(module, ewsg.modules.cross_entropy, data)


def test_cross_entropy_of_impossible_classes():
    logits = jnp.array([-jnp.inf, 0.0])
    assert float(ewsg.modules.cross_entropy(logits, jnp.array(1))) == 0
    assert float(ewsg.modules.cross_entropy(logits, jnp.array(0))) == np.inf
    assert np.isnan(float(ewsg.modules.cross_entropy(logits, jnp.array(2))))
