"""What a run was asked for, in words and as the call that would repeat it."""

import json
from typing import TYPE_CHECKING, Any

from ..._core.component import describe
from ...collect import Draws
from ..predictive import PredictiveVerdict
from .diagnostics import Row

if TYPE_CHECKING:
    from ..run import Run

_LONGEST_LIST = 20
_LONGEST_TEXT = 300


def asked(run: "Run") -> list[Row]:
    """The task of a run, from its settings."""
    settings = run.settings
    rows = [Row("goal", _goal(run)), Row("method", _method(settings))]
    rows += [
        Row(label, f"{settings[name]:,}")
        for name, label in (("num_data", "data"), ("dimension", "parameters"), ("num_chains", "chains"))
        if isinstance(settings.get(name), int)
    ]
    if run.temperature != 1:
        rows.append(Row("temperature", f"{run.temperature:g}"))
    return rows


def plan(run: "Run") -> list[Row]:
    """The numbers of the plan with their reasons; empty for a run that was set by hand."""
    notes = run.settings.get("plan")
    notes = notes if isinstance(notes, dict) else {}
    pairs = ((name, note) for name, note in notes.items() if isinstance(note, list | tuple) and len(note) == 2)
    return [
        Row(name, f"{value:.4g}" if isinstance(value, float) else str(value), "", str(why))
        for name, (value, why) in pairs
    ]


def _goal(run: "Run") -> str:
    verdict, settings = run.verdict, run.settings
    if verdict is None:
        discard, thin = settings.get("discard", 0), settings.get("thin", 1)
        every = f"one step in {thin} kept" if thin > 1 else "every step kept"
        return f"{settings['num_steps']:,} steps per chain, the first {discard:,} discarded, {every} of the rest"
    what = "predictions" if isinstance(verdict, PredictiveVerdict) else "every mean and sd"
    goal = settings.get("goal") or {}
    passes = _passes(settings, goal)
    limits = [f"{passes:.3g} passes over the data per chain"] if passes else []
    limits += [f"{goal['seconds']:g} seconds"] if goal.get("seconds") else []
    wanted = f"to {verdict.accuracy:g} posterior sd" if goal.get("accuracy") else "as accurately as possible"
    return f"{what} {wanted}" + (f", within {' and '.join(limits)}" if limits else "")


def _passes(settings: dict[str, Any], goal: dict[str, Any]) -> float | None:
    """`data_passes=` of a planned run, unless it was left to the plan."""
    network = settings.get("network") or {}
    if not goal.get("budget") or network.get("default_budget"):
        return None
    return goal["budget"] / settings["num_data"] / settings["num_chains"]


def _method(settings: dict[str, Any]) -> str:
    parts = (settings.get(role) for role in ("estimator", "integrator"))
    method = " × ".join(_nested(part) for part in parts if part)
    return f"{method}, in coordinates of the posterior" if settings.get("coordinates") else method


def _nested(part: dict[str, Any]) -> str:
    """`ControlVariate(Leverage(Paired))`."""
    inner = part.get("inner")
    name = str(part["component"])
    return f"{name}({_nested(inner)})" if isinstance(inner, dict) and "component" in inner else name


def call(run: "Run") -> str:
    """The Python call that would repeat a run; `...` stands for values that only the caller has."""
    settings = run.settings
    seed = settings.get("seed", 0)
    options = [] if seed == "key" else [f"seed={seed!r}"]
    options += [f"rng={settings['rng']!r}"] if settings.get("rng") else []
    if settings.get("collect") not in (None, describe(Draws())):
        options.insert(0, f"collect={_written(settings['collect'], 'ewsg.collect')}")
    if run.verdict is not None:
        arguments = _planned(settings)
    else:
        parts = (settings.get(role) for role in ("estimator", "integrator"))
        arguments = [_written(part) for part in parts if part]
        arguments += ["coordinates=..."] if settings.get("coordinates") else []
        lengths = ("num_chains", "num_steps", "discard", "thin")
        arguments += ["init=...", *(f"{name}={settings[name]!r}" for name in lengths if name in settings)]
    lines = "".join(f"    {argument},\n" for argument in ["target", *arguments, *options])
    key = "  # and the key that was given as seed=\n" if seed == "key" else ""
    return f"run = ewsg.sample(\n{lines}{key})"


def _planned(settings: dict[str, Any]) -> list[str]:
    goal = settings.get("goal") or {}
    passes = _passes(settings, goal)
    return [
        *([f"accuracy={goal['accuracy']!r}"] if goal.get("accuracy") else []),
        *([f"data_passes={passes:.6g}"] if passes else []),
        *([f"seconds={goal['seconds']!r}"] if goal.get("seconds") else []),
        f"num_chains={settings['num_chains']!r}",
    ]


def _written(value: Any, module: str = "ewsg") -> str:
    """A setting as Python: components by their constructors; arrays, functions and own classes as far as is known."""
    if isinstance(value, dict) and "component" in value:
        home = f"{module}." if str(value.get("$class", "")).startswith("ewsg:") else ""
        fields = {name: entry for name, entry in value.items() if name not in ("component", "$class")}
        given = (f"{name}={_written(entry)}" for name, entry in fields.items() if entry is not None)
        return f"{home}{value['component']}({', '.join(given)})"
    return "..." if isinstance(value, dict | list | tuple) else repr(value)


def shortened(settings: dict[str, Any]) -> str:
    """All settings as JSON, in which long lists and texts are cut."""
    return json.dumps(_cut(settings), indent=2, ensure_ascii=False, default=str)


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _cut(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        kept = [_cut(entry) for entry in value[:_LONGEST_LIST]]
        return [*kept, f"... ({len(value)} in all)"] if len(value) > _LONGEST_LIST else kept
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"{value[:_LONGEST_TEXT]}... ({len(value)} characters)"
    return value
