#!/usr/bin/env bash
# Builds the wheel, installs it into a virtual environment of its own, and tests it there: pytest (doctests and the guide's
# code included), then mypy. The environment lies in target/ and is made anew when what it holds changes.
set -euo pipefail
cd "$(dirname "$0")"
. ../../.ci/environment.sh
work=$target/python
environment python tests/requirements.txt

# Spark is the only one that needs it.
if [ -z "${JAVA_HOME:-}" ] && ! command -v java >/dev/null; then
  install default-jre-headless || echo "python: there is no Java, and the tests of Spark are skipped: install Java 17 or newer" >&2
fi

echo "python: building the wheel"
rm -rf "$work/wheels"
maturin build --quiet --profile dev --out "$work/wheels" --interpreter "$work/venv/bin/python"
pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$work"/wheels/*.whl

# What `dedup` must agree with.
program
mutated

# What `nearset.valkey` is tested with; the module's own test.sh has built it before, and installed what that takes.
if command -v clang >/dev/null; then
  cargo build --quiet --package nearset-valkey
  export NEAR_MODULE=$target/debug/libnearset_valkey.so
else
  echo "python: there is no clang, and the tests of nearset.valkey are skipped: run crates/nearset-valkey/test.sh first" >&2
fi

echo "python: testing $(basename "$work"/wheels/*.whl)"
# From elsewhere, so that what is imported is what was installed.
cd "$work"
python -m pytest --quiet -p no:cacheprovider "$@" "$root/crates/nearset-python/tests"
check=(python -m mypy --config-file "$root/crates/nearset-python/pyproject.toml" --cache-dir "$work/mypy")
"${check[@]}" -p nearset
"${check[@]}" "$root/crates/nearset-python/tests/typing_check.py"
