"""Thousands of damaged files: each is refused in one sentence, or is a run that can be shown and resumed."""

import contextlib
import copy
import dataclasses
import sys
import zipfile

import numpy as np
import pytest
from archives import assemble, members

import ewsg
from ewsg.errors import InputError

try:
    import resource
except ImportError:  # Windows
    resource = None

POOL = (
    *(None, True, False, -1, 0, 1, 2, 7, 2**31, 2**70, 10**400, 0.5, -1.0, 1e308, float("inf"), float("nan")),
    *("", "x", "ok", "diverged", "[/b]", "\ud800", "ewsg:Uniform", "float64", "leaf", [], {}, [[]], [None], {"a": 1}),
    *([1, "a"], {"dict": [["a", "leaf"]]}, {"other": 1}, {"list": []}, {"$opaque": "f"}, {"$list": [1.0]}),
)


def nodes(tree, path=()):
    """The path of every entry of a JSON tree."""
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from nodes(child, (*path, key))


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


def flipped(random, content):
    content = bytearray(content)
    for place in random.integers(len(content), size=random.integers(1, 9)):
        content[place] ^= random.integers(1, 256)
    return bytes(content)


def cut(random, content):
    first, last = sorted(random.integers(len(content) + 1, size=2))
    kinds = [content[:first], content[first:], content[:first] + content[last:], content[:last] + content[first:]]
    return [*kinds, content + bytes(last), b"\0" * len(content)][random.integers(6)]


def shuffled(random, content):
    """Members swapped, renamed, removed, doubled, packed; all checksums of the archive are right."""
    stored, header = members(content)
    one, other = random.choice(sorted(stored), 2, replace=False)
    kind = random.integers(6)
    if kind == 0:
        stored[one], stored[other] = stored[other], stored[one]
    elif kind == 1:
        stored[str(random.choice(["99.npy", "x", "../0.npy", "0", "header"]))] = stored.pop(one)
    elif kind == 2:
        del stored[one]
    elif kind == 3:
        stored[one] = stored[other]
    elif kind == 4:
        return assemble(stored, header, zipfile.ZIP_DEFLATED)
    else:
        return assemble(stored)
    return assemble(stored, header)


def edited(random, content):
    """One or two entries of the header replaced, removed, exchanged or doubled; all checksums are right."""
    stored, header = members(content)
    for _ in range(random.integers(1, 3)):
        section = "settings" if random.integers(2) else str(random.choice(sorted(header)))
        places = [place for place in nodes(header) if place[0] == section] or list(nodes(header))
        *parent, key = places[random.integers(len(places))]
        owner, kind = at(header, parent), random.integers(5)
        if kind == 0:
            del owner[key]
        elif kind == 1:
            other = places[random.integers(len(places))]
            owner[key] = copy.deepcopy(at(header, other)) if other[: len(parent)] != (*parent,) else None
        elif kind == 2 and isinstance(owner, list):
            owner.insert(key, copy.deepcopy(owner[key]))
        elif kind == 2:
            owner["x"] = owner.pop(key)
        else:
            owner[key] = copy.deepcopy(POOL[random.integers(len(POOL))])
    return assemble(stored, header)


KINDS = {flipped: 600, cut: 300, shuffled: 200, edited: 900}


def attempt(action, sentences):
    """What `action` returns; None if it is refused, and then the sentence is kept. Other exceptions are failures."""
    try:
        return action()
    except InputError as error:
        sentences.append(str(error))
        return None


def peak():
    """The most bytes that this process has held; 0 where the system does not say."""
    if resource is None:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@contextlib.contextmanager
def little_memory():
    """At most 500 MB more than before; Linux forgets the peaks of earlier tests when it is told to."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = peak()
    yield
    assert peak() - before < 500e6


def assert_sentences(sentences):
    assert not [text for text in sentences if "\n" in text or len(text) > 500]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_damaged_files_are_refused_or_are_runs(whole, tmp_path, kind):
    """Seen before: of 3,600 files 943 raised TypeError, KeyError, MemoryError and others; some failed in summary()."""
    random, path = np.random.default_rng(0), tmp_path / "run.npz"
    accepted, sentences = 0, []
    path.write_bytes(whole[1])
    original = ewsg.load(path)
    with little_memory():
        for _ in range(KINDS[kind]):
            path.write_bytes(kind(random, whole[1]))
            run = attempt(lambda: ewsg.load(path), sentences)
            if run is None:
                continue
            accepted += 1
            assert repr(run)
            assert str(run.summary())
            if kind is not edited:
                np.testing.assert_array_equal(run.draws["a"], original.draws["a"])
                assert repr(run) == repr(original)
    assert_sentences(sentences)
    assert accepted < KINDS[kind] / 2


def test_damaged_files_are_not_resumed_or_go_on(whole, tmp_path):
    """Seen before: 206 of 400 raised something else."""
    random, path = np.random.default_rng(1), tmp_path / "run.npz"
    target, content = whole
    resumed, sentences = 0, []
    with little_memory():
        for i in range(500):
            kind = list(KINDS)[i % len(KINDS)] if i < 200 else edited
            path.write_bytes(kind(random, content))
            run = attempt(lambda: ewsg.resume(path, target, num_steps=1), sentences)
            if run is not None:
                resumed += 1
                assert str(run.summary())
    assert_sentences(sentences)
    assert 0 < resumed < 250


@pytest.mark.float32
def test_runs_of_another_precision_are_loaded_and_not_resumed(whole, tmp_path):
    """64-bit parameters in a process without them: numbers are read as they are, chains cannot go on."""
    target, content = whole
    path = tmp_path / "run.npz"
    path.write_bytes(content)
    run = ewsg.load(path)
    position, draws = (
        {k: v.astype(np.float64) for k, v in t.items()} for t in (run.fingerprint["position"], run.draws)
    )
    dataclasses.replace(run, draws=draws, fingerprint=run.fingerprint | {"position": position}).save(path)
    assert ewsg.load(path).draws["a"].dtype == np.float64
    assert ewsg.load(path, like={"a": 0.0, "b": 0.0}).draws["a"].dtype == np.float64
    with pytest.raises(InputError, match="jax_enable_x64"):
        ewsg.resume(path, target, num_steps=1)


def test_names_that_look_like_markup_are_shown_as_they_are(whole, tmp_path):
    """Seen before: rich took them for tags and raised MarkupError."""
    path = tmp_path / "run.npz"
    path.write_bytes(whole[1])
    run = ewsg.load(path)
    stats = {name: np.ones((2, 5)) for name in ("[/stat]", "noise_ratio")}
    settings = run.settings | {"estimator": {"component": "[/name]"}}
    dataclasses.replace(run, draws={"[/key]": run.draws["a"]}, stats=stats, settings=settings).save(path)
    text = str(ewsg.load(path).summary())
    assert all(name in text for name in ("[/key]", "[/stat]", "[/name]"))
