r"""The standard normal quantile of a 32-bit word, elementwise and without branches.

Of a word u, the last bit is the sign and the others are y = (⌊u/2⌋ + ½)/2^31, the probability of a larger |ξ|:

    |ξ| = √2 erfc⁻¹(y) = (1 − y) P(w),   w = −log(y(2 − y)) in (0, 21.5]

with one of two polynomials P of degree 7, for |ξ| below and above 3.4, whose coefficients are selected (M. Giles's form
of erf⁻¹, without his square root). Relative error below 2·10⁻⁶, |ξ| up to 6.34. One word per number: no pairs as in
Box–Muller, whose two halves have to be placed side by side in memory; and no call to a library's logarithm.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt

_CENTRE = (  # least squares for the relative error on Chebyshev points, in s = w/3.25 − 1
    *(2.38094163, 1.09673081, -0.0940852483, -0.0315991103, 0.0284132518, -0.00728906258, -0.00240178558),
    0.00171106322,
)
_TAIL = (  # in s = (w − 14)/7.5
    *(5.06159356, 1.42963899, -0.188410932, 0.0483995381, -0.0157582738, 0.00590056662, -0.00128208215),
    -0.000210792502,
)
_SPLIT = 6.5
_LOGARITHM = (  # Chebyshev interpolation of log(1 + m)/m on |m| ≤ 1/3
    *(0.999999836, -0.500022431, 0.33337989, -0.248416347, 0.197950298, -0.194078572, 0.171112269),
)
_TWO_THIRDS = 0x3F2AAAAB
"""The bits of ⅔ as a float32."""


@jax.jit
def normal(words: UInt[Array, "..."]) -> Float[Array, "..."]:
    """One float32 for each word."""
    y = ((words >> 1).astype(jnp.int32).astype(jnp.float32) + 0.5) * np.float32(2**-31)
    w = -_log(y * (2 - y))
    tail = w > _SPLIT
    s = jnp.where(tail, w * np.float32(1 / 7.5) - np.float32(14 / 7.5), w * np.float32(1 / 3.25) - 1)
    coefficients = [jnp.where(tail, *map(np.float32, pair)) for pair in zip(_TAIL, _CENTRE, strict=True)]
    size = (1 - y) * _polynomial(coefficients, s)
    return _floats(_bits(size) | words << 31)


def _log(number: Float[Array, "..."]) -> Float[Array, "..."]:
    """log of positive numbers: number = 2^e (1 + m), |m| ≤ 1/3."""
    bits = _bits(number).astype(jnp.int32)
    exponent = (bits - _TWO_THIRDS) >> 23
    m = _floats((bits - (exponent << 23)).astype(jnp.uint32)) - 1
    return _polynomial(_LOGARITHM, m) * m + exponent.astype(jnp.float32) * np.float32(np.log(2))


def _polynomial(coefficients: Sequence[Any], x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Horner's rule, lowest coefficient first."""
    total = jnp.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total


def _bits(number: Float[Array, "..."]) -> UInt[Array, "..."]:
    return jax.lax.bitcast_convert_type(number, jnp.uint32)


def _floats(bits: UInt[Array, "..."]) -> Float[Array, "..."]:
    return jax.lax.bitcast_convert_type(bits, jnp.float32)
