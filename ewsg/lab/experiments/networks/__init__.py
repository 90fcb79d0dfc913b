"""Bayesian neural networks on MNIST, as in the paper."""
