#!/usr/bin/env bash
# Checks all crates with the oldest Rust that Cargo.toml promises; rustup installs it where it is missing.
set -euo pipefail
. "$(dirname "$0")/environment.sh"
cd "$root"
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
case $oldest in *.*.*) ;; *) oldest=$oldest.0 ;; esac
command -v rustup >/dev/null || { echo "rustup is needed to get Rust $oldest" >&2; exit 1; }
rustup toolchain list | grep -q "^$oldest-" || { echo "installing Rust $oldest"; rustup toolchain install "$oldest" --profile minimal --no-self-update >/dev/null; }
CARGO_TARGET_DIR=$target/msrv cargo "+$oldest" check --workspace --exclude nearset-valkey --lib --bins --quiet
echo "msrv: Rust $oldest compiles it"
