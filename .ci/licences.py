#!/usr/bin/env python3
"""Checks that what is linked into nearset may be: every dependency's licence is one of a list, and no crate is there in two versions
without a reason. It reads Cargo.lock through `cargo metadata`, which
fetches crates that no part was built of yet."""

import json
import re
import subprocess
import sys
from collections import defaultdict

# Each may be linked into a program under MIT or Apache-2.0, with its notice kept.
ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT", "MIT-0", "Unicode-3.0", "Unlicense", "Zlib", "bzip2-1.0.6",
}

# Crates of two versions, and what asks for the older one.
TWICE = {
    "bitflags": "redis-module, of the server module alone",
    "crypto-common": "crc-fast, of object_store",
    "digest": "crc-fast, of object_store",
    "getrandom": "ahash, of Arrow and Parquet, and ring",
    "miniz_oxide": "png",
    "nix": "redis-module, of the server module alone",
    "r-efi": "getrandom, and on UEFI alone",
    "windows-sys": "ring, and on Windows alone",
}


def is_allowed(expression):
    """Whether one side of each OR, and all of each AND, may be used."""
    expression = expression.replace("/", " OR ")
    sides = re.split(r"\s+OR\s+", expression.replace("(", "").replace(")", ""))
    return any(all(part.strip() in ALLOWED for part in re.split(r"\s+AND\s+", side)) for side in sides)


def main():
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    published = [id for id, package in packages.items() if id in metadata["workspace_members"] and "/crates/" in package["manifest_path"]]

    # What is linked: dependencies, not those of tests and builds.
    linked, waiting = set(), list(published)
    while waiting:
        id = waiting.pop()
        # A procedural macro runs in the compiler, and so does what it is made of.
        is_macro = any("proc-macro" in target["kind"] for target in packages[id]["targets"])
        if id in linked or is_macro:
            continue
        linked.add(id)
        waiting += [dependency["pkg"] for dependency in nodes[id]["deps"] if any(kind["kind"] is None for kind in dependency["dep_kinds"])]

    wrong = []
    versions = defaultdict(set)
    for package in (packages[id] for id in linked):
        versions[package["name"]].add(package["version"])
        licence = package["license"] or "none stated"
        if not is_allowed(licence):
            wrong.append(f"{package['name']} {package['version']}: licence {licence} is not on the list of {sys.argv[0]}")
    twice = {name: found for name, found in versions.items() if len(found) > 1}
    wrong += [f"{name}: {' and '.join(sorted(found))}: take one version, or say in TWICE why not" for name, found in twice.items() if name not in TWICE]
    wrong += [f"{name} is there once: take it off TWICE" for name in TWICE if name not in twice]
    print("\n".join(sorted(wrong)) or f"licences of {len(linked)} crates are on the list, and none is there twice without a reason")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
