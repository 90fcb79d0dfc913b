"""How a covariance is stored: as a d × d matrix, as its diagonal, or as a low-rank (Nyström) approximation."""

import abc
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ... import _random
from ..._core.component import check_choice, check_count
from ..._core.types import Key, Position
from ...errors import InputError
from .drag import Rates, eigh, factor_drag, matrix_drag, orthonormal, stretched
from .settings import OWNER, Settings

_MOST_ROWS = 2_000
_ROUNDING_IN_EPS = 32


class GradientMoments(NamedTuple):
    """m₁ and m₂ of G_i = n∇(−V_i) (Alg. 2), and where they were calibrated; `second` is m₂, its diagonal, or m₂Ω."""

    anchor: Position
    mean: Float[Array, " d"]
    second: Float[Array, "d *k"]
    sketch: Float[Array, "d k"] | None

    def stretched(self, root: Float[Array, " d"] | None) -> "GradientMoments":
        """The moments of √P·G_i for the diagonal √P; Ω becomes Ω/√P, which leaves ΩᵀĈΩ unchanged."""
        if root is None:
            return self
        mean = root * self.mean
        if self.sketch is None:
            return self._replace(mean=mean, second=stretched(self.second, root))
        return self._replace(mean=mean, second=root[:, None] * self.second, sketch=self.sketch / root[:, None])

    def sketched(self) -> Float[Array, "d k"]:
        """(m₂ − m₁m₁ᵀ) Ω."""
        assert self.sketch is not None
        return self.second - self.mean[:, None] * (self.mean @ self.sketch)[None]


class AbstractForm(eqx.Module):
    """A way to store second moments Σ_i G_i G_iᵀ, and the drag by the covariance computed from them."""

    is_random: ClassVar[bool] = False
    """Whether `empty` draws random numbers."""

    @abc.abstractmethod
    def empty(self, key: Key, zero: Float[Array, " d"]) -> tuple[Float[Array, "d *k"], Float[Array, "d k"] | None]:
        """Second moments of no data, all 0, and the sketch Ω if there is one."""

    @abc.abstractmethod
    def second(self, each: Float[Array, "b d"], sketch: Float[Array, "d k"] | None = None) -> Float[Array, "d *k"]:
        """Σ_i G_i G_iᵀ for the rows G_i, in this form."""

    @abc.abstractmethod
    def moment_drag(
        self, moments: GradientMoments, momentum: Float[Array, " d"], rates: Rates
    ) -> tuple[Float[Array, " d"], Bool[Array, ""]]:
        """scale · (m₂ − m₁m₁ᵀ)₊ r, and whether the projection removed more than rounding errors."""


class AbstractSampledForm(AbstractForm):
    """A form that can also store the sample covariance of one minibatch."""

    @abc.abstractmethod
    def drag(self, covariance: Float[Array, "d *d"], momentum: Float[Array, " d"], rates: Rates) -> Float[Array, " d"]:
        """scale · C r for a covariance C that was computed by `second`."""

    @abc.abstractmethod
    def row_drag(
        self, rows: Float[Array, "b d"], root: Float[Array, " d"] | None, momentum: Float[Array, " d"], rates: Rates
    ) -> Float[Array, " d"]:
        """scale · √P AᵀA √P r for the rows A."""


class FullForm(AbstractSampledForm):
    """A d × d matrix."""

    def empty(self, key: Key, zero: Float[Array, " d"]) -> tuple[Float[Array, "d d"], None]:
        del key
        if zero.size > _MOST_ROWS:
            raise InputError(
                f"{OWNER}(form='full') would keep a {zero.size} × {zero.size} matrix for every chain, but "
                f"the limit is {_MOST_ROWS:,} rows: choose form='diagonal', form='low_rank' with rank=, or mode='batch'"
            )
        return jnp.zeros((zero.size, zero.size), zero.dtype), None

    def second(self, each: Float[Array, "b d"], sketch: Float[Array, "d k"] | None = None) -> Float[Array, "d d"]:
        del sketch
        return each.T @ each

    def moment_drag(
        self, moments: GradientMoments, momentum: Float[Array, " d"], rates: Rates
    ) -> tuple[Float[Array, " d"], Bool[Array, ""]]:
        mean = moments.mean
        drag, values = matrix_drag(moments.second - jnp.outer(mean, mean), momentum, rates)
        return drag, values[0] < -_rounding(mean) * (values[-1] + mean @ mean)

    def drag(self, covariance: Float[Array, "d d"], momentum: Float[Array, " d"], rates: Rates) -> Float[Array, " d"]:
        if rates.ceiling is None:
            return rates.scale * (covariance @ momentum)
        return matrix_drag(covariance, momentum, rates)[0]

    def row_drag(
        self, rows: Float[Array, "b d"], root: Float[Array, " d"] | None, momentum: Float[Array, " d"], rates: Rates
    ) -> Float[Array, " d"]:
        """Computed from the factor, without a d × d matrix."""
        return factor_drag(rows.T if root is None else root[:, None] * rows.T, momentum, rates)


class DiagonalForm(AbstractSampledForm):
    """The d variances."""

    def empty(self, key: Key, zero: Float[Array, " d"]) -> tuple[Float[Array, " d"], None]:
        del key
        return zero, None

    def second(self, each: Float[Array, "b d"], sketch: Float[Array, "d k"] | None = None) -> Float[Array, " d"]:
        del sketch
        return jnp.sum(each**2, axis=0)

    def moment_drag(
        self, moments: GradientMoments, momentum: Float[Array, " d"], rates: Rates
    ) -> tuple[Float[Array, " d"], Bool[Array, ""]]:
        variance = moments.second - moments.mean**2
        return rates.of(variance) * momentum, jnp.any(variance < -_rounding(moments.mean) * moments.second)

    def drag(self, covariance: Float[Array, " d"], momentum: Float[Array, " d"], rates: Rates) -> Float[Array, " d"]:
        return rates.of(covariance) * momentum

    def row_drag(
        self, rows: Float[Array, "b d"], root: Float[Array, " d"] | None, momentum: Float[Array, " d"], rates: Rates
    ) -> Float[Array, " d"]:
        return self.drag(stretched(self.second(rows), root), momentum, rates)


class LowRankForm(AbstractForm):
    """The Nyström approximation Ĉ ≈ ĈΩ(ΩᵀĈΩ)⁺ΩᵀĈ ≤ Ĉ, in O(d · rank) memory."""

    is_random: ClassVar[bool] = True
    rank: int = eqx.field(static=True)

    def empty(self, key: Key, zero: Float[Array, " d"]) -> tuple[Float[Array, "d k"], Float[Array, "d k"]]:
        shape = (zero.size, min(self.rank, zero.size))
        sketch = orthonormal(_random.normal_like(key, jnp.zeros(shape, zero.dtype)))
        return jnp.zeros_like(sketch), sketch

    def second(self, each: Float[Array, "b d"], sketch: Float[Array, "d k"] | None = None) -> Float[Array, "d k"]:
        assert sketch is not None
        return each.T @ (each @ sketch)

    def moment_drag(
        self, moments: GradientMoments, momentum: Float[Array, " d"], rates: Rates
    ) -> tuple[Float[Array, " d"], Bool[Array, ""]]:
        assert moments.sketch is not None
        rows = moments.sketched()
        small = moments.sketch.T @ rows
        values, vectors = eigh((small + small.T) / 2)
        floor = _rounding(moments.mean) * (values[-1] + moments.mean @ moments.mean)
        inverse = jnp.where(values > floor, 1 / jnp.sqrt(jnp.maximum(values, floor)), 0.0)
        return factor_drag(rows @ (vectors * inverse[None]), momentum, rates), values[0] < -floor


FORMS = ("full", "diagonal", "low_rank")
"""The forms of `CovarianceFriction` by name."""


def check_form(settings: Settings) -> None:
    """Raise InputError if the form is unknown, or does not fit the rank or the mode."""
    check_choice(OWNER, "form", settings.form, FORMS)
    if (settings.form == "low_rank") != (settings.rank is not None):
        raise InputError(f"{OWNER}: form='low_rank' and rank= go together: give both or neither")
    if settings.rank is not None:
        check_count(OWNER, "rank", settings.rank, 1)
        if settings.mode != "svrg":
            raise InputError(f"{OWNER}: form='low_rank' is for mode='svrg', not {settings.mode!r}")


def make_form(settings: Settings) -> AbstractForm:
    """The form with these settings."""
    if settings.rank is not None:
        return LowRankForm(settings.rank)
    return DiagonalForm() if settings.form == "diagonal" else FullForm()


def _rounding(mean: Float[Array, " d"]) -> float:
    return float(_ROUNDING_IN_EPS * jnp.finfo(mean.dtype).eps)
