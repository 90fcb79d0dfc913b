"""Benchmarks: `ewsg bench`."""
