# What the tests of several crates need before they can start; to be sourced.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}

# environment NAME REQUIREMENTS: a virtual environment in the target folder, first in the path; made anew when what it is to hold changes.
environment() {
  local python=${PYTHON:-python3} venv=$target/$1/venv wanted
  wanted=$("$python" --version; cat "$2")
  if [ "$(cat "$venv/wanted" 2>/dev/null)" != "$wanted" ]; then
    echo "$1: making a virtual environment in $venv, and installing into it from PyPI: $(grep -v '^#' "$2" | tr '\n' ' ')"
    rm -rf "$venv"
    "$python" -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$2"
    echo "$wanted" >"$venv/wanted"
  fi
  PATH="$venv/bin:$PATH"
}

# program: the program whose answers are tested. `make test` says which it has built; by itself, a script builds it, with the features of fewer packages.
program() {
  if [ -z "${NEARSET:-}" ]; then
    (cd "$root" && cargo build --quiet --package nearset-cli)
    export NEARSET=$target/debug/nearset
  fi
}

# mutated: files with changed fields and right checksums, made once a test run, for tests of what reads files.
mutated() {
  export NEARSET_MUTATED=$target/mutated
  rm -rf "$NEARSET_MUTATED"
  (cd "$root" && cargo run --quiet --package nearset --example mutate_files -- "$NEARSET_MUTATED" 600 7 >/dev/null)
}

# install PACKAGE...: Debian's packages, where we may; false where they can't be had.
install() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  echo "installing $*"
  local get=(apt-get install --quiet=2 --no-install-recommends "$@")
  DEBIAN_FRONTEND=noninteractive "${get[@]}" >/dev/null ||
    { apt-get update --quiet=2 && DEBIAN_FRONTEND=noninteractive "${get[@]}" >/dev/null; }
}

# need COMMAND PACKAGE...: the command, or an end with what to install.
need() {
  local command=$1
  shift
  command -v "$command" >/dev/null || install "$@" || {
    echo "$command is needed: install $*" >&2
    exit 1
  }
}
