# `make test` is the README's test command and what CI runs. CONTRIBUTING.md says what each part needs.

.PHONY: test quick check serve bench characterise bench-peers bench-held-out bench-index bench-pairs bench-hamming

# The program that `cargo test` builds, so that the scripts after it need not build another.
test: export NEARSET := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/debug/nearset
test: check
	cargo test --workspace --exclude nearset-valkey --quiet
	crates/nearset-cli/test.sh
	crates/nearset-records/test.sh
	crates/nearset-valkey/test.sh
	crates/nearset-python/test.sh
	python3 -m unittest discover -s bench
	.ci/package.sh
	.ci/site.sh

# What a change of the library, the formats, the runs or the program should pass before anything else; nothing is installed for it.
quick:
	cargo fmt --all --check
	cargo clippy $(QUICK) --all-targets --quiet -- -D warnings
	cargo test $(QUICK) --lib --bins --test files --test docs --test program --quiet -- --skip killed --skip unfinished --skip resumed --skip ctrl_c

QUICK = --package nearset-theory --package nearset --package nearset-view --package nearset-pictures --package nearset-records --package nearset-jobs --package nearset-cli

# The server's module needs clang: its own test.sh sees to that, and checks it.
# Records are built once more without the feature `remote`, which the program has.
# Of the library 350 items are public at most, and 24 more with the feature that only servers turn on.
check:
	cargo fmt --all --check
	cargo clippy --workspace --exclude nearset-valkey --all-targets --quiet -- -D warnings
	cargo clippy --package nearset-records --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --exclude nearset-valkey --lib --no-deps --quiet
	crates/nearset/public_items.py --most 350
	cargo doc --package nearset --features server --lib --no-deps --quiet --target-dir target/doc-server
	crates/nearset/public_items.py --docs target/doc-server/doc/nearset --most 374
	.ci/licences.py

# The oldest Rust that Cargo.toml promises, which rustup installs.
.PHONY: msrv
msrv:
	.ci/msrv.sh

# The crates as they would be published, in the order of their dependencies; a program is built of them and run. Nothing is uploaded.
.PHONY: packages
packages:
	.ci/package.sh

# The wheel for every Python from 3.9 on and the source distribution, each installed and run, in target/wheels. ARGS=--manylinux links by zig, for old systems.
.PHONY: wheels
wheels:
	.ci/wheels.sh $(ARGS)

# Images of the program and of a server with the module; DOCKER=podman or DOCKER=buildah where there is no Docker.
DOCKER ?= docker
.PHONY: images
images:
	$(DOCKER) build --tag nearset --file Dockerfile .
	$(DOCKER) build --tag nearset-valkey --file crates/nearset-valkey/Dockerfile .

# The documentation as a site, in target/site.
.PHONY: site
site:
	.ci/site.sh

# Manual pages and completions of shells, in target/man and target/completions.
.PHONY: manuals
manuals:
	cargo build --release --quiet --package nearset-cli
	target/release/nearset man target/man --force
	mkdir -p target/completions
	for shell in bash zsh fish elvish powershell; do target/release/nearset completions $$shell > target/completions/nearset.$$shell || exit 1; done

bench:
	cargo bench --workspace --exclude nearset-valkey

# A server with the module, on PORT; what is missing is installed.
serve:
	crates/nearset-valkey/start.sh

# The pictures of docs/guide/explore.md, by Chromium.
.PHONY: screenshots
screenshots:
	crates/nearset-cli/test.sh screenshots

# Accuracy rather than speed: 200 random goals, each in 16 filters; about 2 minutes.
characterise:
	cargo run --release --quiet -p nearset --example characterise > testdata/plan/characterise.tsv

# Reruns the papers' experiments in full, and rewrites their tables and figures; within half an hour on 2 cores.
.PHONY: papers
papers:
	cargo run --release --quiet -p papers -- all

# Installs other deduplicators beside nearset and runs all on one corpus; ARGS=--quick for a sample.
bench-peers:
	python3 bench/peers.py $(ARGS)

# What the default finds on corpora that it was not chosen with.
bench-held-out:
	python3 bench/held_out.py $(ARGS)

# The index of vectors beside faiss on word vectors; ARGS=--quick repeats nothing.
bench-index:
	python3 bench/index.py $(ARGS)

# The index of hashes beside faiss's exact binary indexes, 1e6 and 1e7 hashes, and on pictures; some 15 minutes of CPU. ARGS="--items 1000000" for less.
bench-hamming:
	python3 bench/hamming.py $(ARGS)

# Pairs of a million hashes and removal of word vectors, beside faiss; some 10 minutes of CPU. ARGS=--quick for less.
.PHONY: bench-joins
bench-joins:
	python3 bench/joins.py $(ARGS)

# Texts that are few edits apart, beside all pairs by the same comparison; some 5 minutes of CPU.
.PHONY: bench-edits
bench-edits:
	python3 bench/edits.py $(ARGS)

# Recall and precision on made-up persons with typing errors.
.PHONY: bench-records
bench-records:
	python3 bench/records.py $(ARGS)

# Pictures and distorted copies of them, by PDQ, beside pdqhash; some 15 minutes. ARGS=--quick for a sample.
.PHONY: bench-pictures
bench-pictures:
	python3 bench/pictures.py $(ARGS)

# All near pairs of the licence texts, by nearset and its peers; ARGS=--quick for a sample.
bench-pairs:
	python3 bench/pairs.py $(ARGS)

# How soon the explorer can be used on the licence texts, how fast its slider answers, and in how much memory.
.PHONY: bench-explore
bench-explore:
	cargo build --release --quiet --package nearset-cli
	python3 bench/explore.py

# The wheel beside the program, rensa and datasketch, on texts that Python holds; ARGS=--quick for a sample.
.PHONY: bench-python
bench-python:
	python3 bench/python.py $(ARGS)

# Memory, CPU time and answers of nearset.spark as rows and partitions grow; about an hour on 2 cores. ARGS="--rows 100000 --partitions 4 16" for less, ARGS=--mllib for MinHashLSH beside it.
.PHONY: bench-spark
bench-spark:
	python3 bench/spark.py $(ARGS)

# The four stages of nearset.datatrove beside datatrove's own MinHash; some 10 minutes on 2 cores. ARGS="--rows 5000" for less.
.PHONY: bench-datatrove
bench-datatrove:
	python3 bench/pipelines.py $(ARGS)

# The module in a server over loopback, beside the library alone and beside SET and GET; about 3 minutes. ARGS=--quick for a sample.
.PHONY: bench-service
bench-service:
	python3 bench/service.py $(ARGS)

# What comparing finds where pages share most of their text; some 5 minutes. ARGS="--only forum" for one kind.
.PHONY: bench-templates
bench-templates:
	python3 bench/templates.py $(ARGS)

# Four shards from a web server on this machine, beside the same as files; some 5 minutes. nginx is installed where it is missing.
.PHONY: bench-remote
bench-remote:
	python3 bench/remote.py $(ARGS)

# How fast repeated lines are found, beside XXH3 and beside dolma's filter, which is installed; some 5 minutes. ARGS="--only sources" for one corpus.
.PHONY: bench-units
bench-units:
	python3 bench/units.py $(ARGS)

# A library that is extended batch by batch: what each batch costs.
.PHONY: bench-library
bench-library:
	python3 bench/library.py $(ARGS)

# Benchmark items planted in real text, found by nearset and by n-gram rules; ARGS="--decon PROGRAM" for decon too, ARGS=--quick for a sample.
.PHONY: bench-decontaminate
bench-decontaminate:
	python3 bench/decontaminate.py $(ARGS)

# Made-up texts of any number, in a fixed memory and on several threads; some 4 minutes. ARGS="--documents 30000000 --memory 1G" for 16 GB of them.
.PHONY: bench-scale
bench-scale:
	python3 bench/scale.py $(ARGS)

# What billions of documents take, from what bench-scale measured: the table of docs/scale.md.
.PHONY: scale-model
scale-model:
	python3 bench/scale_model.py $(ARGS)
