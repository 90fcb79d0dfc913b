"""Vocabulary and array tools that know no MCMC."""
