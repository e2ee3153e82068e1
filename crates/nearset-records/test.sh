#!/usr/bin/env bash
# Reads from and writes to stores that run on this machine: S3 as PyPI's moto plays it, Azure as npm's azurite does where there is npm.
# Arguments go to unittest.
set -euo pipefail
cd "$(dirname "$0")"
. ../../.ci/environment.sh
environment stores tests/stores/requirements.txt
if command -v npm >/dev/null; then
  azurite=$target/stores/azurite
  if [ ! -x "$azurite/node_modules/.bin/azurite-blob" ]; then
    echo "stores: installing into $azurite from npm: azurite"
    mkdir -p "$azurite"
    npm install --prefix "$azurite" --silent --no-audit --no-fund azurite@3.37.0 >/dev/null
  fi
  export AZURITE=$azurite/node_modules/.bin/azurite-blob
else
  echo "stores: there is no npm, and az:// is not tested: install npm" >&2
fi
program
export PYTHONDONTWRITEBYTECODE=1
cd tests/stores
python -m unittest "$@"
