"""Logistic regression on Covertype, as in the paper."""
