"""The worlds in which the tests run (`.ci/run`), by their versions; constraints*.txt pin them to the last digit."""

import re

WORLDS = {
    "oldest": {"python": "3.11", "jax": "0.8", "jaxlib": "0.8", "numpy": "2.0", "arviz": "0.20"},
    "default": {"python": "3.11", "jax": "0.10", "jaxlib": "0.10", "numpy": "2.4", "arviz": "0.23"},
    "newest": {"python": "3.13", "jax": "0.12", "jaxlib": "0.12", "numpy": "2.5", "arviz": "1.3"},
}
EXCLUDED = {"jax": ("0.10.2",), "jaxlib": ("0.10.2",)}
"""Versions that miscompile chains: ewsg/cli/canary.py."""


def release(version: str) -> tuple[int, int]:
    """The first two numbers of a version: (0, 10) of 0.10.1, (2, 5) of 2.5.0rc1, (3, 0) of 3."""
    major, minor = re.match(r"(\d*)\.?(\d*)", version).groups()  # pyright: ignore[reportOptionalMemberAccess]
    return int(major or 0), int(minor or 0)


def name(versions: dict[str, str]) -> str | None:
    """The world that has these versions of the packages, up to their third numbers, under whichever Python."""
    for world, expected in WORLDS.items():
        packages = expected.keys() - {"python"}
        if all(release(versions[package]) == release(expected[package]) for package in packages):
            return world
    return None


def tested(package: str) -> tuple[str, str] | None:
    """The oldest and the newest version that the tests run with; None for a package that is not tracked."""
    versions = [world[package] for world in WORLDS.values() if package in world]
    return (min(versions, key=release), max(versions, key=release)) if versions else None
