#!/usr/bin/env bash
# Builds the module and starts a server with it, whose data outlives a crash; installs what is missing on a bare Debian or Ubuntu.
# PORT (6379) is where it listens, DATA where it keeps its files. Arguments go to the server: start.sh --appendfsync always
set -euo pipefail
. "$(dirname "$0")/../../.ci/environment.sh"
port=${PORT:-6379}
data=${DATA:-$target/near-data}

need cc build-essential
need clang clang libclang-dev
command -v cargo >/dev/null || { echo "cargo is needed: install Rust, see https://rustup.rs" >&2; exit 1; }
(cd "$root" && cargo build --release --package nearset-valkey)
server=$(command -v valkey-server || command -v redis-server) || {
  install redis-server || { echo "a server is needed: install valkey-server or redis-server" >&2; exit 1; }
  server=$(command -v redis-server)
}
cli=$(command -v valkey-cli || command -v redis-cli || echo redis-cli)
if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
  echo "something listens on port $port already: PORT=6380 $0" >&2
  exit 1
fi

mkdir -p "$data"
cat <<END
$(basename "$server") with near filters on port $port, files in $data. To talk to it:
  $(basename "$cli") -p $port NEAR.RESERVE seen METRIC jaccard NEAR 0.8 CAPACITY 1000000
  $(basename "$cli") -p $port NEAR.ADD seen "have I seen anything near this?"
END
exec "$server" --port "$port" --dir "$data" --appendonly yes --loadmodule "$target/release/libnearset_valkey.so" "$@"
