"""NumPyro models that are not a prior and a sum over the rows of one data set: one sentence each."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import ewsg
from ewsg._core import optional
from ewsg.errors import InputError, MissingPackage

Y = np.array([0.4, -1.1, 2.3, 0.9, 1.7], np.float32)


def mean():
    return numpyro.sample("mean", dist.Normal(0.0, 2.0))


def local(y):
    at = mean()
    with numpyro.plate("data", len(y)):
        own = numpyro.sample("own", dist.Normal(at, 1.0))
        numpyro.sample("y", dist.Normal(own, 1.0), obs=y)


def unobserved(y):
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", dist.Normal(mean(), 1.0))


def two_plates(y):
    at = mean()
    for name in ("first", "second"):
        with numpyro.plate(f"plate_{name}", len(y)):
            numpyro.sample(name, dist.Normal(at, 1.0), obs=y)


def discrete(y):
    kind = numpyro.sample("kind", dist.Bernoulli(0.5))
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", dist.Normal(kind, 1.0), obs=y)


def outside(y):
    numpyro.sample("y", dist.Normal(mean(), 1.0), obs=y)


def half_outside(y):
    at = mean()
    numpyro.sample("first", dist.Normal(at, 1.0), obs=1.0)
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", dist.Normal(at, 1.0), obs=y)


def without_prior(y):
    at = numpyro.param("at", 0.0)
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", dist.Normal(at, 1.0), obs=y)


def closed():
    at = mean()
    with numpyro.plate("data", len(Y)):
        numpyro.sample("y", dist.Normal(at, 1.0), obs=jnp.asarray(Y))


def wide_prior(y):
    at = numpyro.sample("mean", dist.Normal(0.0, 1.0 + len(y)))
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", dist.Normal(at, 1.0), obs=y)


def centred(y):
    at = mean()
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", dist.Normal(at, 1.0), obs=y - jnp.mean(y))


def counted(y):
    effects = numpyro.sample("effects", dist.Normal(0.0, 1.0).expand([len(np.unique(y))]).to_event(1))
    with numpyro.plate("data", len(y)):
        numpyro.sample("y", dist.Normal(effects[0], 1.0), obs=y)


@pytest.mark.parametrize(
    ("model", "args", "sentence"),
    [
        (local, (Y,), "the latent site own is inside the plate data"),
        (unobserved, (Y,), "the model observes nothing"),
        (two_plates, (Y,), "observed sites are in several plates, plate_first, plate_second"),
        (discrete, (Y,), "the latent site kind is discrete"),
        (outside, (Y,), "the observed site y is outside of any plate"),
        (half_outside, (Y,), "the observed site first is outside of any plate"),
        (without_prior, (Y,), "a parameter without a prior, at"),
        (closed, (), "the site y takes all data whatever the rows of the plate data"),
        (counted, (Y,), "compute sizes, such as the number of groups, outside the model"),
        (local, (), "failed on its arguments: .*missing 1 required positional argument"),
        (Y, (), "takes a NumPyro model, a function, first"),
    ],
)
def test_what_cannot_be_split_is_named(model, args, sentence):
    with pytest.raises(InputError, match=sentence):
        ewsg.Target.from_numpyro(model, *args)


@pytest.mark.parametrize("model", [wide_prior, centred])
def test_priors_and_rows_that_depend_on_other_rows_do_not_add_up(model):
    with pytest.raises(InputError, match="not a prior and a sum over rows: for 5 rows it says"):
        ewsg.Target.from_numpyro(model, Y)


def test_a_plate_has_to_be_one_of_the_model():
    with pytest.raises(InputError, match="no plate 'date'"):
        ewsg.Target.from_numpyro(wide_prior, Y, plate="date")
    with pytest.raises(InputError, match="the observed site second is outside of the plate plate_first"):
        ewsg.Target.from_numpyro(two_plates, Y, plate="plate_first")


@pytest.mark.untyped
def test_numpyro_is_an_extra(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name="numpyro")

    monkeypatch.setattr(optional.importlib, "import_module", missing)
    sentence = r"needs the package numpyro, which is not installed: pip install 'ewsg\[numpyro\]'"
    with pytest.raises(MissingPackage, match=sentence):
        ewsg.Target.from_numpyro(outside, Y)
    with pytest.raises(MissingPackage, match=sentence):
        ewsg.Target(lambda params, y: -y * params["rate"], None, Y, constraints={"rate": "positive"})
