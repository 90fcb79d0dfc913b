"""Shared types and array tools, independent of MCMC."""
