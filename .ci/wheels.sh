#!/usr/bin/env bash
# Builds the wheel and the source distribution into target/wheels, installs each into an environment of its own and runs it there.
# --manylinux links by zig (from PyPI) against an old C library, so that the wheel runs on old systems too.
set -euo pipefail
. "$(dirname "$0")/environment.sh"
wheels=$target/wheels
rm -rf "$wheels"
case "${1:-}" in
  --manylinux) tools="maturin[zig]>=1.9,<2" flags=(--zig --compatibility manylinux2014) ;;
  "") tools="maturin>=1.9,<2" flags=() ;;
  *) echo "usage: $0 [--manylinux]" >&2; exit 2 ;;
esac
mkdir -p "$target/wheel-tools"
echo "$tools" >"$target/wheel-tools/requirements.txt"
environment wheel-tools "$target/wheel-tools/requirements.txt"
cd "$root/crates/nearset-python"
maturin build --quiet --profile "${PROFILE:-release}" --locked --out "$wheels" "${flags[@]}"
maturin sdist --out "$wheels"

# What is installed is run away from the sources.
run() {
  local venv=$target/wheel-tools/$1
  rm -rf "$venv"
  python3 -m venv "$venv"
  CARGO_TARGET_DIR=$target MATURIN_PEP517_ARGS="--profile dev" "$venv/bin/pip" install --quiet --disable-pip-version-check "$2"
  (cd "$venv" && bin/python -c 'import nearset; assert nearset.dedup(["to be or not to be", "that is the question", "To be, or not to be!"]).tolist() == [0, 1]')
  echo "wheels: $(basename "$2") installs and runs"
}
run wheel "$(echo "$wheels"/*.whl)"
run sdist "$(echo "$wheels"/*.tar.gz)"
