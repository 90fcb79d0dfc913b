#!/usr/bin/env bash
# Install a wheel where the checkout has never been seen, and use it in an empty folder: try_wheel.sh WHEEL CONSTRAINTS
# First plain, for `ewsg.sample` and `run.summary()`, then with every extra, for the commands and the demonstration.
set -euo pipefail
wheel=$(realpath "$1")
constraints=$(realpath "$2")
tools=$(dirname "$(realpath "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"${PYTHON:-python3}" -m venv "$scratch/environment"
PIP_CACHE_DIR=$("$scratch/environment/bin/pip" cache dir) # the only thing taken from the home folder
export PIP_CACHE_DIR
install() { # install EXTRAS: the wheel with these extras
  "$scratch/environment/bin/pip" install -q --no-compile -c "$constraints" "$wheel$1"
}

mkdir "$scratch/empty" "$scratch/home"
cp "$tools/try_core.py" "$scratch"
cd "$scratch/empty"
unset EWSG_DATA PYTHONPATH
export HOME="$scratch/home" XDG_CACHE_HOME="$scratch/home/cache" MPLBACKEND=Agg
export PATH="$scratch/environment/bin:$PATH"

install ''
python "$scratch/try_core.py"

install '[all]'
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
ewsg report run.npz # which try_core.py has saved
test -s report.html
ewsg demo --quick
test -s ewsg-demo/results.json
