"""The raw random words of a run, to standard output: `python benchmarks/random_stream.py | dieharder -a -g 200`.

Words come in the order step, chain, number, with keys derived exactly as the sampler derives them (chain, stream, step,
then force and noise), so that neighbours in the output are the numbers of neighbouring chains and steps.
"""

import argparse
import sys

import jax
import jax.numpy as jnp
import numpy as np

from ewsg import _random
from ewsg._random.streams import chain_keys


def words(keys: jax.Array, first: jax.Array, num_steps: int, numbers: int) -> jax.Array:
    """The words of `num_steps` steps: of each chain `numbers` for its minibatch and `numbers` for its noise."""

    def one(key: jax.Array) -> jax.Array:
        key_force, key_noise = _random.split(key)
        drawn = [jax.random.bits(k, (numbers,), jnp.uint32) for k in (_random.fold(key_force, 0), key_noise)]
        return jnp.concatenate(drawn)

    def step(number: jax.Array) -> jax.Array:
        return jax.vmap(one)(jax.vmap(_random.fold, (0, None))(keys, number))

    return jax.lax.map(step, first + jnp.arange(num_steps))


def main() -> None:
    """Writes words until the reader closes the pipe."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rng", default="fast", choices=_random.GENERATORS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chains", type=int, default=1000)
    parser.add_argument("--numbers", type=int, default=2)
    options = parser.parse_args()
    keys = chain_keys(_random.make_key(options.seed, options.rng), options.chains).steps
    steps = max(1, 2**20 // options.chains)
    draw = jax.jit(words, static_argnums=(2, 3))
    try:
        for first in range(0, 2**31 - steps, steps):
            sys.stdout.buffer.write(np.asarray(draw(keys, jnp.int32(first), steps, options.numbers)).tobytes())
    except BrokenPipeError:
        sys.stderr.close()


if __name__ == "__main__":
    main()
