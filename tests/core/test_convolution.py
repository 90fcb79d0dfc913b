"""Convolutions as matrix products: the same values, gradients and directional derivatives as `lax.conv`."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ewsg
from ewsg._core.convolution import rewritten

CASES = {
    "plain": {},
    "strides": {"window_strides": (2, 3)},
    "same": {"padding": "SAME"},
    "uneven padding": {"padding": ((1, 0), (0, 2))},
    "dilated kernel": {"rhs_dilation": (2, 1)},
    "channels last": {"dimension_numbers": ("NHWC", "HWIO", "NHWC")},
    "mixed layout": {"dimension_numbers": ("NCHW", "HWIO", "NHWC"), "padding": "SAME"},
}


def primitives(function, *args) -> str:
    return str(jax.make_jaxpr(function)(*args))


def normal(number, shape):
    return jax.random.normal(jax.random.key(number), shape)


def shapes(options):
    layout = options.get("dimension_numbers", ("NCHW", "OIHW", "NCHW"))
    sizes = {"N": 2, "C": 3, "H": 9, "W": 8}, {"O": 4, "I": 3, "H": 3, "W": 2}
    return [tuple(size[letter] for letter in letters) for size, letters in zip(sizes, layout[:2], strict=True)]


def assert_same(one, other, *args):
    """Values, all gradients and a directional derivative, to float32's precision."""
    tangents = tuple(normal(10 + k, arg.shape) for k, arg in enumerate(args))
    places = tuple(range(len(args)))

    def all_of(function):
        """Arrays are arguments, not constants: jaxlib 0.8.0 folds a constant convolution to wrong numbers."""

        def found(args, tangents):
            gradients = jax.grad(lambda *a: jnp.sum(jnp.sin(function(*a))), places)(*args)
            return *jax.jvp(function, args, tangents), gradients

        return jax.tree.leaves(jax.jit(found)(args, tangents))

    for ours, theirs in zip(all_of(one), all_of(other), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5 * float(np.abs(theirs).max()))


@pytest.mark.parametrize("name", CASES)
def test_a_convolution_is_a_product_with_patches(name):
    options = {"window_strides": (1, 1), "padding": "VALID"} | CASES[name]

    def function(x, w):
        return jax.nn.relu(jax.lax.conv_general_dilated(x, w, **options))

    x, w = (normal(k, shape) for k, shape in enumerate(shapes(CASES[name])))
    assert "conv_general_dilated" in primitives(function, x, w)
    assert "conv_general_dilated" not in primitives(rewritten(function), x, w)
    assert_same(rewritten(function), function, x, w)


def test_in_one_and_three_dimensions():
    for k, d in ((1, 1), (2, 3)):
        x, w = normal(k, (2, 3, *(5,) * d)), normal(k + 5, (4, 3, *(2,) * d))
        function = lambda x, w, d=d: jax.lax.conv(x, w, (1,) * d, "VALID")  # noqa: E731
        assert_same(rewritten(function), function, x, w)


@pytest.mark.parametrize("length", [6, 7])
def test_pooling_is_a_maximum_of_a_reshaped_array(length):
    pool = eqx.nn.MaxPool2d(2, 2)
    x = normal(0, (3, length, length))
    assert "reduce_window" in primitives(pool, x)
    assert "reduce_window" not in primitives(rewritten(pool), x)
    assert_same(rewritten(pool), pool, x)


def test_the_gradient_of_a_maximum_attained_twice_goes_to_the_first_as_in_jax():
    pool = eqx.nn.MaxPool2d(2, 2)
    x = jax.random.randint(jax.random.key(0), (3, 8, 8), 0, 3).astype(jnp.float32)
    assert_same(rewritten(pool), pool, x)
    gradient = jax.grad(lambda x: jnp.sum(rewritten(pool)(x)))(jnp.zeros((1, 2, 2)))
    np.testing.assert_array_equal(gradient, [[[1, 0], [0, 0]]])


def test_a_window_with_nan_is_nan():
    x = normal(0, (1, 4, 4)).at[0, 1, 2].set(jnp.nan)
    np.testing.assert_array_equal(jnp.isnan(rewritten(eqx.nn.MaxPool2d(2, 2))(x)), [[[False, True], [False, False]]])


def test_second_derivatives():
    pool = eqx.nn.MaxPool2d(2, 2)

    def function(x, w):
        return jnp.sum(pool(jnp.tanh(jax.lax.conv(x, w, (1, 1), "VALID"))[0]) ** 3)

    x, w, direction = normal(0, (1, 2, 6, 6)), normal(1, (3, 2, 3, 3)), normal(2, (3, 2, 3, 3))

    def product(f):
        return lambda x, w: jax.jvp(lambda w: jax.grad(f, 1)(x, w), (w,), (direction,))[1]

    ours, theirs = (jax.jit(product(f))(x, w) for f in (rewritten(function), function))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 * float(jnp.abs(theirs).max()))


def test_what_is_not_known_stays():
    x = normal(0, (1, 4, 6, 6))

    def grouped(x, w):
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=2)

    w = normal(1, (4, 2, 3, 3))
    assert "conv_general_dilated" in primitives(rewritten(grouped), x, w)
    assert_same(rewritten(grouped), grouped, x, w)
    overlapping = eqx.nn.MaxPool2d(3, 2)
    assert "reduce_window" in primitives(rewritten(overlapping), x[0])
    assert_same(rewritten(overlapping), overlapping, x[0])


def test_derivatives_of_its_own_stay():
    """A rule that a user gave to a function with a convolution in it is not differentiated through."""
    x, w = normal(0, (1, 1, 5)), normal(1, (1, 1, 3))

    def square(w):
        return jnp.sum(jax.lax.conv(x, w, (1,), "VALID") ** 2)

    backward = jax.custom_vjp(square)
    backward.defvjp(lambda w: (square(w), None), lambda _, g: (7 * g * jnp.ones_like(w),))
    forward = jax.custom_jvp(square)
    forward.defjvp(lambda primals, tangents: (square(*primals), 5 * jnp.sum(tangents[0])))
    for function, slope in ((backward, 7), (forward, 5)):
        np.testing.assert_array_equal(jax.grad(rewritten(lambda w, f=function: f(w)))(w), slope * np.ones((1, 1, 3)))


def test_a_checkpoint_stays_one():
    x = normal(0, (1, 1, 6))

    def layer(w):
        return jnp.sum(jnp.sin(jax.lax.conv(x, w, (1,), "VALID")))

    w = normal(1, (1, 1, 3))
    saved = jax.checkpoint(layer, policy=jax.checkpoint_policies.nothing_saveable)
    text = primitives(rewritten(saved), w)
    assert "nothing_saveable" in text
    assert "conv_general_dilated" not in text
    np.testing.assert_allclose(jax.grad(rewritten(saved))(w), jax.grad(layer)(w), rtol=1e-5)


def test_a_function_without_convolutions_is_called_as_it_is():
    calls = []

    def function(x):
        calls.append(1)
        return {"twice": 2 * x}

    assert primitives(rewritten(function), jnp.ones(3)) == primitives(function, jnp.ones(3))
    assert float(rewritten(function)(jnp.ones(()))["twice"]) == 2


def test_a_likelihood_with_a_network_is_sampled_without_convolutions():
    """Calls, custom derivatives and constants on the way; force and directional derivative of the target."""
    kernel, images = normal(0, (2, 1, 3, 3)), np.asarray(normal(1, (20, 1, 8, 8)))
    labels = np.arange(20) % 3

    @jax.jit
    def layer(x, w):
        return eqx.nn.MaxPool2d(2, 2)(jax.nn.silu(jax.lax.conv(x[None], w, (1, 1), "VALID")[0]))

    def log_likelihood(params, datum):
        image, label = datum
        return jax.nn.log_softmax(params["out"] @ layer(image, params["w"]).ravel())[label]

    target = ewsg.Target(log_likelihood, None, (images, labels))
    params = {"w": kernel, "out": normal(2, (3, 18))}
    indices = jnp.arange(7)
    assert "conv_general_dilated" not in primitives(target.force, params, indices)

    def by_hand(params):
        values = [log_likelihood(params, (jnp.asarray(images[i]), labels[i])) for i in range(7)]
        return 20 * jnp.stack(values)

    expected = jax.grad(lambda p: jnp.mean(by_hand(p)))(params)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), target.force(params, indices), expected
    )
    slopes = jax.jvp(by_hand, (params,), (params,))[1]
    np.testing.assert_allclose(target.directional(params, indices, params), slopes, rtol=1e-4, atol=1e-4)
