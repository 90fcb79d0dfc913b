#!/usr/bin/env bash
# A browser for the tests of reports, where there is none and the system's packages can be installed. It never fails:
# without a browser these tests are skipped, and say so.
set -u

has() { command -v "$1" > /dev/null 2>&1; }

for name in chromium chromium-browser google-chrome; do
  if has "$name"; then
    echo "browser: $(command -v "$name")"
    exit 0
  fi
done
if has apt-get && [ "$(id -u)" = 0 ]; then
  export DEBIAN_FRONTEND=noninteractive
  install() { timeout 300 apt-get install -y --no-install-recommends chromium > /dev/null 2>&1; }
  install || { timeout 120 apt-get update > /dev/null 2>&1 && install; } || true
fi
if has chromium; then echo "browser: $(command -v chromium), installed"; else echo "browser: none, its tests are skipped"; fi
