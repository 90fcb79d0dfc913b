"""Experiments on the paper's two-dimensional Gaussian."""
