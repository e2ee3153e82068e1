#!/usr/bin/env python3
"""Counts the public items of the library from what rustdoc wrote, and fails above a limit.

Counted are what a user can name or call: modules, structs, enums, traits, functions, type aliases, constants, and the methods and
constants of each type and trait. Fields, variants and implementations of traits are not; a re-export counts once.

    cargo doc --no-deps -p nearset && crates/nearset/public_items.py --most 350
"""

import argparse
import collections
import pathlib
import re
import sys


def inherent(page: str) -> set[str]:
    """The methods and constants of a type or trait that are its own."""
    own = re.split(r'id="(?:trait-implementations|synthetic-implementations|blanket-implementations|implementors)"', page)[0]
    return set(re.findall(r'<section id="((?:method|tymethod|associatedconstant)\.[^"]+)" class="method', own)) | set(
        re.findall(r'<section id="(associatedconstant\.[^"]+)"', own)
    )


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--docs", type=pathlib.Path, default=pathlib.Path("target/doc/nearset"), help="what rustdoc wrote")
    arguments.add_argument("--most", type=int, help="how many there may be")
    arguments.add_argument("--list", action="store_true", help="print every item")
    options = arguments.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    names = set(re.findall(r'<li><a href="([^"]+)">', (options.docs / "all.html").read_text()))
    names |= {str(path.parent.relative_to(options.docs)) + "/index.html" for path in options.docs.glob("*/**/index.html")}
    for name in sorted(names):
        page = (options.docs / name).read_text()
        if "Redirecting" in page[:400]:
            continue
        own = inherent(page) if re.search(r"(?:struct|enum|trait|union)\.", name) else set()
        counts[name.split("/")[0]] += 1 + len(own)
        if options.list:
            print(name, *sorted(own))
    for module, count in counts.most_common():
        print(f"{module:<12}{count:>5}")
    total = sum(counts.values())
    print(f"{'in all':<12}{total:>5}")
    if options.most is not None and total > options.most:
        print(f"more than {options.most}: what is public is a promise, so hide what no user needs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
