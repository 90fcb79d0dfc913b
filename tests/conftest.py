"""Strict JAX for every test, the data sets that are on this machine, and the problems that many tests share."""

import gc
import os
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

import compile_soon  # before JAX, which reads its flags once
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import numpyro  # noqa: F401  before ArviZ 1, which leaves a proxy of it whose submodules would be loaded twice
import pooch
import pytest
from gaussian import gaussian_log_likelihood
from skewed import OBSERVED, log_likelihood, log_prior

import ewsg
from ewsg import _random
from ewsg.datasets.registry import DATASETS
from ewsg.sampler import SamplerState

_TESTS = Path(__file__).resolve().parent
_BESIDE = _TESTS.parents[1] / "shared" / "data"
_FIRST = ("statistical", "lab", "planning", "compliance")  # folders whose files take minutes
_MOST_MEMORY = 3 * 2**30  # bytes of a worker, beyond which it forgets its compiled programs
_most_memory = _MOST_MEMORY

if not os.environ.get("EWSG_DATA"):
    os.environ["EWSG_DATA"] = str(_BESIDE if _BESIDE.is_dir() else _TESTS / "data")

# With JAX_ENABLE_X64=1 the data of most tests stay float32 under float64 parameters, as those of users do.
jax.config.update("jax_numpy_dtype_promotion", "standard" if jax.config.jax_enable_x64 else "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_debug_key_reuse", True)

pytest.register_assert_rewrite("chains", "index_chain")  # of tests/helpers


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--measure", metavar="FILE", help="append the CPU seconds of every test to a file")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `slow.txt` lists: the tests that took too long when they were last measured (`make slow-list`).

    And begin with the long files: a worker that is handed one last leaves the other idle.
    """
    items.sort(key=lambda item: item.path.parent.name not in _FIRST)
    listed = set((_TESTS / "slow.txt").read_text().splitlines())
    for item in items:
        if item.nodeid.removeprefix("tests/") in listed:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item):
    path, began = item.config.getoption("--measure"), time.process_time()
    result = yield
    if path:
        with open(path, "a") as file:
            file.write(f"{time.process_time() - began:.2f} {item.nodeid.removeprefix('tests/')}\n")
    return result


def pytest_configure(config: pytest.Config) -> None:
    config.option.loadscopereorder = False  # of pytest-xdist, by number of tests: these are not the longest files
    if config.getoption("jaxtyping_packages", None):
        pytest.raises = _UncheckedRaises


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked `float32` in a run in float64.

    And one marked `needs_data(name, ...)` where one of these sets (of all sets, if none is named) is absent.
    """
    if jax.config.jax_enable_x64 and item.get_closest_marker("float32"):
        pytest.skip("about float32, and this run is in float64")
    for mark in item.iter_markers("needs_data"):
        absent = [name for name in mark.args or DATASETS if not is_present(name)]
        if absent:
            pytest.skip(f"{', '.join(absent)} not in {os.environ['EWSG_DATA']}: set EWSG_DATA to a folder that has it")


def is_present(name: str) -> bool:
    """Whether every file of a data set is in `$EWSG_DATA`, compressed or not."""
    folder = Path(os.environ["EWSG_DATA"])
    paths = [folder / file.path for files in DATASETS[name].splits.values() for file in files]
    return all(path.is_file() or path.with_suffix("").is_file() for path in paths)


@contextmanager
def _unchecked():
    """No type checks inside: arguments have wrong types on purpose."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)


class _UncheckedRaises:
    """`pytest.raises` of a run with type checks: what is refused in a sentence may be of the wrong type."""

    def __init__(self, *args, **kwargs):
        self._raises, self._unchecked = _raises(*args, **kwargs), _unchecked()

    def __enter__(self):
        self._unchecked.__enter__()
        return self._raises.__enter__()

    def __exit__(self, *exception):
        self._unchecked.__exit__(None, None, None)
        return self._raises.__exit__(*exception)


_raises = pytest.raises


@pytest.fixture(autouse=True)
def _types(request):
    """A test marked `untyped` is not checked."""
    with _unchecked() if request.node.get_closest_marker("untyped") else nullcontext():
        yield


@pytest.fixture(scope="session")
def centres() -> np.ndarray:
    """The paper's 50 centres in the plane; the same ones in float64."""
    return np.asarray(jax.random.normal(jax.random.key(42), (50, 2), jnp.float32), jnp.result_type(float))


@pytest.fixture(scope="session")
def gaussian(centres) -> ewsg.Target:
    """The paper's 2-D Gaussian: V(θ) = Σ ½‖θ − c_i‖²."""
    return ewsg.Target(gaussian_log_likelihood, None, centres)


@pytest.fixture(scope="module")
def skewed() -> ewsg.Target:
    """Five numbers, of which one is far out, and a normal model with (μ, log σ) unknown: both marginals are skewed."""
    return ewsg.Target(log_likelihood, log_prior, OBSERVED)


@pytest.fixture(scope="session")
def compiled_and_eager():
    """Four steps of 10,000 chains from the origin of the plane, as one compiled program and operation by operation.

    The sampler, and with it every hyper-parameter, is an argument of the program, compiled as users compile it.
    """
    chains, steps, axes = 10_000, 4, SamplerState(0, 0, None)

    def advance(sampler, key):
        key_init, key_steps = _random.split(key)

        def one(state, step_key):
            return jax.vmap(sampler.step, (0, axes), (axes, 0))(_random.split(step_key, chains), state)[0], None

        start = jax.vmap(sampler.init, out_axes=axes)(_random.split(key_init, chains), jnp.zeros((chains, 2)))
        return jax.lax.scan(one, start, _random.split(key_steps, steps))[0].phase

    def both(sampler):
        key = _random.make_key(1, "fast")
        compiled = jax.jit(advance).lower(sampler, key).compile(compile_soon.AS_FOR_USERS)(sampler, key)
        with jax.disable_jit(), jax.debug_key_reuse(False):
            eager = advance(sampler, key)
        return jax.tree.leaves(jax.tree.map(np.asarray, compiled)), jax.tree.leaves(jax.tree.map(np.asarray, eager))

    return both


@pytest.fixture(scope="session", autouse=True)
def _no_network():
    """No test downloads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooch, "HTTPDownloader", _no_downloads)
        yield


def _no_downloads(**_settings):
    raise ConnectionError("a test tried to download")


@pytest.fixture(scope="module", autouse=True)
def _bounded_memory():
    """Compiled programs are kept for later modules, but not without limit: a worker would grow to 6 GiB.

    What stays when they are gone is no reason to forget those of every later module.
    """
    global _most_memory
    yield
    if _memory() > _most_memory:
        jax.clear_caches()
        gc.collect()
        _most_memory = max(_MOST_MEMORY, _memory() + 2**30)


def _memory() -> int:
    """Bytes that this process holds; more than any limit where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 2**63
