# `make test` is the README's test command and what CI runs.

.PHONY: test check bench

test: check
	cargo test --workspace --quiet

check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings

bench:
	cargo bench --workspace
