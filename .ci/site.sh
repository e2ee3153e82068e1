#!/usr/bin/env bash
# Builds the documentation site into target/site; mkdocs comes from PyPI, into a virtual environment of its own.
set -euo pipefail
. "$(dirname "$0")/environment.sh"
environment site-tools "$root/.ci/site-requirements.txt"
cd "$root"
# Not --quiet, by which warnings would not count as failures.
mkdocs build --strict --site-dir "$target/site"
test -s "$target/site/index.html" -a -s "$target/site/guide/dedup.html" -a -s "$target/site/cookbook/training-data.html"
echo "site: $target/site/index.html"
