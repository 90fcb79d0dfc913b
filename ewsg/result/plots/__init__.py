"""Figures of a run: marginals, traces, temperatures and noise over time, and the two parameters that mix worst."""

from .figure import Drawing, drawings, plot

__all__ = ["Drawing", "drawings", "plot"]
