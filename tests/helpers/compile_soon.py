"""Imported before JAX, this makes XLA compile without optimisation: tests are mostly compilation.

The sampling loop compiles four times as fast so. What is about compiled code, or runs long chains, sets EWSG_OPTIMISED
and is compiled as users compile it (`OPTIMISED` in the Makefile).
"""

import importlib.metadata
import os

FLAGS = ["--xla_backend_optimization_level=0", "--xla_cpu_parallel_codegen_split_count=1"]

if tuple(map(int, importlib.metadata.version("jaxlib").split(".")[:2])) < (0, 11):  # later ones know no other emitters
    FLAGS.append("--xla_cpu_use_fusion_emitters=false")

if not os.environ.get("EWSG_OPTIMISED"):
    given = os.environ.get("XLA_FLAGS", "").split()
    os.environ["XLA_FLAGS"] = " ".join([*given, *(flag for flag in FLAGS if flag not in given)])
