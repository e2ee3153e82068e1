#!/usr/bin/env bash
# Packages the crates that are published, in the order of their dependencies, and builds the program of what is in the packages alone, to see
# that nothing is missing in them. `cargo publish` in the same order publishes them; nothing is uploaded here.
set -euo pipefail
. "$(dirname "$0")/environment.sh"
cd "$root"
crates=(nearset-theory nearset-pictures nearset nearset-view nearset-records nearset-jobs nearset-cli)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
grep -q "^## $version" CHANGELOG.md || { echo "CHANGELOG.md does not tell about $version" >&2; exit 1; }

cargo package --quiet --no-verify --allow-dirty "${crates[@]/#/--package=}"
# Away from the repository, whose workspace they must not find.
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
patches=()
for crate in "${crates[@]}"; do
  tar -xzf "$target/package/$crate-$version.crate" -C "$unpacked"
  for field in description license repository keywords categories readme; do
    grep -q "^$field = " "$unpacked/$crate-$version/Cargo.toml" || { echo "$crate: Cargo.toml has no $field" >&2; exit 1; }
  done
  patches+=(--config "patch.crates-io.$crate.path='$unpacked/$crate-$version'")
done
cp Cargo.lock "$unpacked/nearset-cli-$version/"
(cd "$unpacked/nearset-cli-$version" && CARGO_TARGET_DIR=$target/packaged cargo build --quiet --offline "${patches[@]}")
"$target/packaged/debug/nearset" --version | grep -qx "nearset $version"
"$target/packaged/debug/nearset" dedup examples/licences.jsonl -o - --quiet | wc -l | grep -qx ' *575'
echo "packages: ${crates[*]}, version $version, in $target/package"
