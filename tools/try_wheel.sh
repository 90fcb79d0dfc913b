#!/usr/bin/env bash
# Install a wheel where the checkout has never been seen, and use it in an empty folder: try_wheel.sh WHEEL CONSTRAINTS
set -euo pipefail
wheel=$(realpath "$1")
constraints=$(realpath "$2")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"${PYTHON:-python3}" -m venv "$scratch/venv"
"$scratch/venv/bin/pip" install -q --no-compile -c "$constraints" "$wheel"

mkdir "$scratch/empty" "$scratch/home"
cd "$scratch/empty"
unset EWSG_DATA PYTHONPATH
export HOME="$scratch/home" XDG_CACHE_HOME="$scratch/home/cache" MPLBACKEND=Agg PATH="$scratch/venv/bin:$PATH"
python - << 'EOF'
import importlib.resources

shipped = importlib.resources.files("ewsg")
assert "site-packages" in str(shipped), shipped
assert (shipped / "py.typed").is_file()
assert (shipped / "problems" / "answers" / "pima.npz").is_file()
EOF
ewsg --help > /dev/null
ewsg list
ewsg doctor
ewsg demo --quick
test -s ewsg-demo/results.json
