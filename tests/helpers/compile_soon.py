"""Imported before JAX, this makes XLA compile without optimisation: tests are mostly compilation.

The sampling loop compiles four times as fast so. Long chains are the exception: their tests set EWSG_OPTIMISED and are
compiled as users compile (`OPTIMISED` in the Makefile). `AS_FOR_USERS` does the same for one program.
"""

import importlib.metadata
import os

_OPTIONS = {  # here, and by default
    "xla_backend_optimization_level": (0, 3),
    "xla_cpu_parallel_codegen_split_count": (1, 32),
    "xla_cpu_use_fusion_emitters": (False, True),
}
if tuple(map(int, importlib.metadata.version("jaxlib").split(".")[:2])) >= (0, 11):  # which knows no other emitters
    del _OPTIONS["xla_cpu_use_fusion_emitters"]

AS_FOR_USERS = {name: default for name, (_, default) in _OPTIONS.items()}
"""Compiler options of one program that is to be compiled as users compile it: `lowered.compile(AS_FOR_USERS)`."""

if not os.environ.get("EWSG_OPTIMISED"):
    flags = [f"--{name}={str(here).lower()}" for name, (here, _) in _OPTIONS.items()]
    given = os.environ.get("XLA_FLAGS", "").split()
    os.environ["XLA_FLAGS"] = " ".join([*given, *(flag for flag in flags if flag not in given)])
