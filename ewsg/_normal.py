r"""The standard normal quantile of a 32-bit word, elementwise and without branches.

Of a word u, the last bit is the sign and the others are y = (⌊u/2⌋ + ½)/2^31, the probability of a larger |ξ|:

    |ξ| = √2 erfc⁻¹(y) = (1 − y) P(√(w + 9/4)),   w = −log(y(2 − y))

with a polynomial P of degree 13, as the ratio √2 erfc⁻¹(y)/(1 − y) is smooth in that variable (M. Giles's form of
erf⁻¹, with one branch for two). Relative error below 2·10⁻⁶, |ξ| up to 6.34. One word for one number, no pairs as in
Box–Muller, whose two halves have to be put side by side in memory; no call to a library's logarithm.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt

_QUANTILE = (  # Chebyshev interpolation on √(w + 9/4) in [1.5, 4.9375], in s = (√(w + 9/4) − 3.21875)/1.71875
    *(3.79127533, 2.74223168, -0.128833935, 0.00281655012, 0.110326741, -0.196704053, 0.214774716),
    *(-0.0610530812, -0.208299603, 0.205384063, 0.074109629, -0.131756317, -0.00865874936, 0.030461057),
)
_LOGARITHM = (  # Chebyshev interpolation of log(1 + m)/m on |m| ≤ 1/3
    *(1.0, -0.499999334, 0.333332726, -0.250079317, 0.20007234, -0.164145204, 0.140558127, -0.153942718, 0.137483091),
)
_TWO_THIRDS = 0x3F2AAAAB
"""⅔ as a float32, in its bits."""


def normal(words: UInt[Array, "..."]) -> Float[Array, "..."]:
    """One float32 for each word."""
    y = ((words >> 1).astype(jnp.int32).astype(jnp.float32) + 0.5) * np.float32(2**-31)
    w = jnp.maximum(-_log(y * (2 - y)), 0)
    s = (jnp.sqrt(w + 2.25) - 3.21875) * np.float32(1 / 1.71875)
    size = (1 - y) * _polynomial(_QUANTILE, s)
    return _floats(_bits(size) | words << 31)


def _log(number: Float[Array, "..."]) -> Float[Array, "..."]:
    """log of positive numbers: number = 2^e (1 + m), |m| ≤ 1/3."""
    bits = _bits(number).astype(jnp.int32)
    exponent = (bits - _TWO_THIRDS) >> 23
    m = _floats((bits - (exponent << 23)).astype(jnp.uint32)) - 1
    return _polynomial(_LOGARITHM, m) * m + exponent.astype(jnp.float32) * np.float32(np.log(2))


def _polynomial(coefficients: tuple[float, ...], x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Horner's rule, lowest coefficient first."""
    total = jnp.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + np.float32(coefficient)
    return total


def _bits(number: Float[Array, "..."]) -> UInt[Array, "..."]:
    return jax.lax.bitcast_convert_type(number, jnp.uint32)


def _floats(bits: UInt[Array, "..."]) -> Float[Array, "..."]:
    return jax.lax.bitcast_convert_type(bits, jnp.float32)
