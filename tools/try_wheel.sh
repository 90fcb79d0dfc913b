#!/usr/bin/env bash
# Install a wheel where the checkout has never been seen, and use it in an empty folder: try_wheel.sh WHEEL CONSTRAINTS
# Twice: with every extra, for the commands and the demonstration; and plain, for `ewsg.sample` and `run.summary()`.
set -euo pipefail
wheel=$(realpath "$1")
constraints=$(realpath "$2")
tools=$(dirname "$(realpath "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

install() { # install NAME EXTRAS: a fresh environment with the wheel and these extras
  "${PYTHON:-python3}" -m venv "$scratch/$1"
  "$scratch/$1/bin/pip" install -q --no-compile -c "$constraints" "$wheel$2"
}
install core ''
install all '[all]'

mkdir "$scratch/empty" "$scratch/home"
cp "$tools/try_core.py" "$scratch"
cd "$scratch/empty"
unset EWSG_DATA PYTHONPATH
export HOME="$scratch/home" XDG_CACHE_HOME="$scratch/home/cache" MPLBACKEND=Agg
"$scratch/core/bin/python" "$scratch/try_core.py"

export PATH="$scratch/all/bin:$PATH"
python - << 'END'
import importlib.resources

shipped = importlib.resources.files("ewsg")
assert "site-packages" in str(shipped), shipped
assert (shipped / "py.typed").is_file()
assert (shipped / "__init__.pyi").is_file()  # the table of public names, read when ewsg is imported
assert (shipped / "problems" / "answers_npz" / "pima.npz").is_file()
END
ewsg --help > /dev/null
ewsg list
ewsg doctor
ewsg demo --quick
test -s ewsg-demo/results.json
