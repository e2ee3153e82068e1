#!/usr/bin/env python3
"""Hashes pictures and distorted copies of them, and writes `bench/results/pictures.md`: which copies PDQ still takes for the
same, which other pictures it does, how far nearset's hashes are from pdqhash's, and how many pictures per second both hash.

The pictures: up to 1,000 tiles of wallpapers, photographs most of them, and as many pieces of clip art from Debian's packages, which are downloaded and unpacked
below `target/` (by `apt-get download` and `dpkg`, without root); Pillow makes 12 distorted copies of each. `make bench-pictures`
runs it, some 15 minutes on 2 cores; `make bench-pictures ARGS=--quick` takes 100 of each kind and writes to `target/` only.
"""

import argparse
import datetime
import json
import os
import platform
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from environment import BENCH, ROOT, TARGET, python_with

WORK = ROOT / "target" / "bench-pictures"
PROGRAM = TARGET / "release" / "nearset"
PACKAGES = {
    "photo": ["gnome-backgrounds", "mate-backgrounds", "plasma-workspace-wallpapers", "ukui-wallpapers"],
    "clip art": ["openclipart-png"],
}
PEERS = ["pdqhash==0.2.8", "ImageHash==4.3.2", "pillow", "numpy"]
NEAR, LEAST_QUALITY = 31, 50
TILE = (512, 384)
ACROSS = 6


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="100 pictures of each kind, results into target/ only")
    arguments.add_argument("--program", type=Path, help="a nearset that is built already")
    options = arguments.parse_args()
    try:
        python = python_with(*PEERS)
    except subprocess.CalledProcessError:
        sys.exit("pdqhash, ImageHash or Pillow can't be installed: nothing to compare with, and nothing to distort pictures by")
    if Path(sys.prefix).resolve() != python.parent.parent.resolve():
        os.execv(python, [str(python), __file__, *sys.argv[1:]])
    if options.program is None:
        subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "nearset-cli"], check=True, cwd=ROOT)
    else:
        global PROGRAM
        PROGRAM = options.program
    each = 100 if options.quick else 1_000
    album = WORK / f"album-{each}"
    if not (album / "done").exists():
        make(album, each)
    hashes = WORK / "hashes.jsonl"
    summary = nearset("hash", album, "-o", hashes, "--algorithm", "pdq,phash,dhash")
    rows = {row["id"]: row for row in map(json.loads, hashes.read_text().splitlines())}
    counts = {kind: len(list((album / kind.replace(" ", "-")).iterdir())) for kind in PACKAGES}
    lines = recall(album, rows)
    lines += false_pairs(album, rows)
    lines += peers(album, rows, each)
    write((WORK if options.quick else BENCH / "results") / "pictures.md", lines, (counts, len(rows)), summary)


def nearset(command: str, *arguments: object) -> dict:
    words = [str(PROGRAM), command, *map(str, arguments), "--force", "--json", "-q"]
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)


# Pictures.


def make(album: Path, each: int) -> None:
    """Writes `album/KIND/NUMBER OF NAME/original.png` and the copies beside it; OF and NAME are the number and the name of the file that it was made of."""
    shutil.rmtree(album, ignore_errors=True)
    print(f"making {each} pictures of each kind, with {len(DISTORTIONS)} copies", flush=True)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for kind, packages in PACKAGES.items():
            files = unpack(kind, packages)
            random.Random(7).shuffle(files)
            cut = tiles if kind == "photo" else whole
            made = 0
            # Some have too little to see in them and are left out, so more are looked at than are needed.
            batches = (files[at : at + 32] for at in range(0, len(files), 32))
            pictures_of = (pictures for batch in batches if made < each for pictures in pool.map(cut, batch))
            for of, picture in ((of, picture) for of, pictures in enumerate(pictures_of) for picture in pictures):
                if made < each:
                    folder = album / kind.replace(" ", "-") / f"{made:04} {of:04} {name_of(files[of])}"
                    folder.mkdir(parents=True)
                    (folder / "original.png").write_bytes(picture)
                    made += 1
            if made < each:
                print(f"{kind}: {made} pictures are all there are", flush=True)
        list(pool.map(distort, sorted(str(path) for path in album.glob("*/*/original.png")), chunksize=16))
    (album / "done").touch()


def unpack(kind: str, packages: list[str]) -> list[Path]:
    """The pictures of some packages, of each several sizes the largest."""
    largest: dict[str, Path] = {}
    for package in packages:
        folder = WORK / "packages" / package
        if not folder.exists():
            debs = WORK / "debs"
            debs.mkdir(parents=True, exist_ok=True)
            if subprocess.run(["apt-get", "download", package], cwd=debs, stderr=subprocess.DEVNULL).returncode:
                print(f"{package}: apt-get has none, left out", flush=True)
                continue
            deb = next(debs.glob(f"{package}_*.deb"))
            folder.parent.mkdir(exist_ok=True)
            subprocess.run(["dpkg", "-x", str(deb), str(folder)], check=True)
        for path in sorted(folder.rglob("*")):
            if path.suffix.lower() not in {".jpg", ".jpeg", ".png", ".webp"} or path.is_symlink() or "screenshot" in path.name:
                continue
            # Some come in several sizes and colours, which are no different pictures.
            name = str((path.parents[3] if path.parent.name.startswith("images") else path.parent) / name_of(path))
            if name not in largest or path.stat().st_size > largest[name].stat().st_size:
                largest[name] = path
    files = sorted(largest.values())
    if not files:
        sys.exit(f"no package with a {kind} can be had: nothing to measure")
    return files


def name_of(path: Path) -> str:
    """What a picture is called; plasma's wallpapers are named by their sizes, in a folder of the wallpaper's."""
    name = path.parents[2].name if path.parent.name.startswith("images") else path.stem
    return re.sub(r"(_\d+x\d+|-[dl]|-(dark|light)|-(cold|dark|radioactive|warm)-no-logo)$", "", name, flags=re.IGNORECASE)


def opened(path: Path):
    """A picture on white; none if it can't be read."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None
    try:
        picture = Image.open(path)
        picture.load()
    except OSError:
        return None
    if picture.mode == "RGB":
        return picture
    picture = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")


def tiles(path: Path) -> list[bytes]:
    """A wallpaper, six tiles across, which do not overlap."""
    from PIL import Image

    picture = opened(path)
    if picture is None:
        return []
    width = ACROSS * TILE[0]
    picture = picture.resize((width, picture.height * width // picture.width), Image.BICUBIC, reducing_gap=2)
    corners = [(x * TILE[0], y * TILE[1]) for y in range(picture.height // TILE[1]) for x in range(ACROSS)]
    return [saved for left, top in corners if (saved := save(picture.crop((left, top, left + TILE[0], top + TILE[1]))))]


def whole(path: Path) -> list[bytes]:
    """A piece of clip art, not larger than a tile."""
    from PIL import Image

    picture = opened(path)
    if picture is None:
        return []
    picture.thumbnail(TILE, Image.LANCZOS)
    saved = save(picture)
    return [saved] if saved else []


def save(picture) -> bytes | None:
    """A picture as PNG; none if there is too little to see in it."""
    import io

    import numpy
    import pdqhash

    if min(picture.size) < 64 or pdqhash.compute(numpy.asarray(picture))[1] < LEAST_QUALITY:
        return None
    out = io.BytesIO()
    picture.save(out, "PNG", compress_level=1)
    return out.getvalue()


def rotated(picture):
    from PIL import Image

    return picture.rotate(1.5, Image.BICUBIC, fillcolor=(128, 128, 128))


def noisy(picture):
    import numpy
    from PIL import Image

    pixels = numpy.asarray(picture).astype(float)
    noise = numpy.random.default_rng(picture.width * picture.height).normal(0, 12, pixels.shape)
    return Image.fromarray((pixels + noise).clip(0, 255).astype("uint8"))


def with_text(picture):
    from PIL import ImageDraw, ImageFont

    copy = picture.copy()
    font = ImageFont.load_default(size=copy.height // 12)
    ImageDraw.Draw(copy).text((copy.width // 20, copy.height * 4 // 5), "when you see it", fill="white", stroke_fill="black", stroke_width=2, font=font)
    return copy


def cropped(picture):
    width, height = picture.size
    return picture.crop((width // 50, height // 50, width - width // 50, height - height // 50))


def bordered(picture):
    from PIL import ImageOps

    return ImageOps.expand(picture, max(1, picture.width // 100), fill="black")


def enhanced(kind, factor):
    def change(picture):
        from PIL import ImageEnhance

        return getattr(ImageEnhance, kind)(picture).enhance(factor)

    return change


def blurred(picture):
    from PIL import ImageFilter

    return picture.filter(ImageFilter.GaussianBlur(2))


def scaled(picture):
    from PIL import Image

    return picture.resize((max(8, picture.width // 4), max(8, picture.height // 4)), Image.BICUBIC)


# Name, what is done, ending, options of saving.
DISTORTIONS = [
    ("JPEG, quality 30", lambda picture: picture, "jpg", {"quality": 30}),
    ("WebP, quality 60", lambda picture: picture, "webp", {"quality": 60}),
    ("a quarter of the size", scaled, "png", {}),
    ("2 % cropped from each side", cropped, "jpg", {"quality": 90}),
    ("rotated by 1.5 degrees", rotated, "jpg", {"quality": 90}),
    ("blurred, radius 2", blurred, "png", {}),
    ("noise, sigma 12", noisy, "bmp", {}),
    ("30 % brighter", enhanced("Brightness", 1.3), "jpg", {"quality": 90}),
    ("30 % more contrast", enhanced("Contrast", 1.3), "jpg", {"quality": 90}),
    ("greyscale, 64 colours", lambda picture: picture.convert("L").quantize(64), "gif", {}),
    ("a line of text", with_text, "tiff", {}),
    ("a border of 1 %", bordered, "jpg", {"quality": 90}),
]


def distort(path: str) -> None:
    from PIL import Image

    original = Image.open(path)
    for number, (_, change, ending, options) in enumerate(DISTORTIONS):
        change(original).save(Path(path).with_name(f"{number:02}.{ending}"), **options)


# What comes of it.


def apart(a: str, b: str) -> int:
    return (int(a, 16) ^ int(b, 16)).bit_count()


def recall(album: Path, rows: dict) -> list[str]:
    lines = ["## Distorted copies within 31 bits of their originals", "", "| distortion | photos | clip art | mean distance of photos | of clip art |", "|---|---|---|---|---|"]
    for number, (name, _, ending, _) in enumerate(DISTORTIONS):
        cells, means = [], []
        for kind in PACKAGES:
            folders = sorted((album / kind.replace(" ", "-")).iterdir())
            distances = [apart(rows[str(folder / "original.png")]["hash"], rows[str(folder / f"{number:02}.{ending}")]["hash"]) for folder in folders]
            cells.append(f"{100 * sum(distance <= NEAR for distance in distances) / len(distances):.1f} %")
            means.append(f"{sum(distances) / len(distances):.1f}")
        lines.append(f"| {name} | {' | '.join(cells)} | {' | '.join(means)} |")
    return lines


def false_pairs(album: Path, rows: dict) -> list[str]:
    """By the program, straight from the pictures, which leaves out what has too little to see."""
    lines = [
        "", "## Pairs of different pictures within 31 bits", "",
        "| pictures | files | pairs of one picture | of tiles of one wallpaper | of these, originals | of different pictures | of these, originals |", "|---|---|---|---|---|---|---|",
    ]
    near_tiles: Counter = Counter()
    different: list[str] = []
    for kind in PACKAGES:
        folder = album / kind.replace(" ", "-")
        out = WORK / "pairs.tsv"
        summary = nearset("pairs", folder, "--metric", "hamming", "--near", NEAR, "-o", out)
        counts: Counter = Counter()
        for line in out.read_text().splitlines()[1:]:
            a, b = map(Path, line.split("\t")[:2])
            of, other = (path.parent.name.split(" ", 1)[1] for path in (a, b))
            which = "same" if a.parent == b.parent else "tiles" if kind == "photo" and of == other else "different"
            counts[which] += 1
            names = [name.split(" ", 1)[1] for name in (of, other)]
            if a.stem == b.stem == "original":
                counts[which, "originals"] += 1
                near_tiles[names[0]] += which == "tiles"
            if kind == "photo" and which == "different":
                both = " and ".join(f"`{name}` ({distortion_of(path)})" for name, path in zip(names, (a, b)))
                different.append(f"{both}, {reference_distance(a, b)} bits apart by pdqhash")
        cells = [summary["records"], counts["same"]]
        cells += [counts["tiles"], counts["tiles", "originals"]] if kind == "photo" else ["-", "-"]
        cells += [counts["different"], counts["different", "originals"]]
        lines.append(f"| {kind} | {' | '.join(cell if cell == '-' else f'{cell:,}' for cell in cells)} |")
    listed = ", ".join(f"{count} of `{name}`" for name, count in near_tiles.most_common() if count)
    if listed:
        lines += ["", f"Original tiles of one wallpaper that are near each other: {listed}."]
    if 0 < len(different) <= 10:
        lines += ["", f"Of different wallpapers: {'; '.join(different)}."]
    return lines


def reference_distance(a: Path, b: Path) -> int:
    """How many bits of two pictures' hashes differ by pdqhash."""
    import numpy
    import pdqhash
    from PIL import Image

    one, other = (pdqhash.compute(numpy.asarray(Image.open(path).convert("RGB")))[0] for path in (a, b))
    return int((one != other).sum())


def distortion_of(path: Path) -> str:
    return path.stem if path.stem == "original" else DISTORTIONS[int(path.stem)][0]


def peers(album: Path, rows: dict, each: int) -> list[str]:
    """The same files by pdqhash and imagehash, one thread each."""
    import imagehash
    import numpy
    import pdqhash
    from PIL import Image

    chosen = sorted(rows)
    random.Random(3).shuffle(chosen)
    chosen = sorted(chosen[: 4 * each])
    listed = WORK / "some"
    shutil.rmtree(listed, ignore_errors=True)
    for number, path in enumerate(chosen):
        (listed / f"{number // 1000}").mkdir(parents=True, exist_ok=True)
        (listed / f"{number // 1000}" / f"{number:06}{Path(path).suffix}").symlink_to(Path(path).resolve())
    seconds = {}
    seconds["nearset"] = nearset("hash", listed, "-o", WORK / "some.jsonl", "--threads", 1)["seconds"]
    start = time.monotonic()
    distances, qualities = [], []
    for path in chosen:
        bits, quality = pdqhash.compute(numpy.asarray(Image.open(path).convert("RGB")))
        distances.append(apart(numpy.packbits(bits).tobytes().hex(), rows[path]["hash"]))
        qualities.append(abs(quality - rows[path]["quality"]))
    seconds["pdqhash"] = time.monotonic() - start
    other = {"phash": [], "dhash": []}
    for path in chosen[::4]:
        picture = Image.open(path).convert("RGB")
        for name, found in other.items():
            found.append(apart(str(getattr(imagehash, name)(picture)), rows[path][name]))
    large = [str(path) for package in PACKAGES["photo"] for path in sorted((WORK / "packages" / package).rglob("*.jpg")) if not path.is_symlink()][:60]
    ours = nearset("hash", *large, "-o", WORK / "large.jsonl", "--threads", 1)
    start = time.monotonic()
    for path in large:
        pdqhash.compute(numpy.asarray(Image.open(path).convert("RGB")))
    theirs = time.monotonic() - start
    pixels = sum(row["width"] * row["height"] for row in map(json.loads, (WORK / "large.jsonl").read_text().splitlines()))

    def within(values: list, most: int) -> str:
        return f"{100 * sum(value <= most for value in values) / len(values):.2f} %"

    return [
        "", "## Beside pdqhash and imagehash", "",
        f"| of {len(chosen):,} files | equal | at most 2 bits apart | at most 10 | most |", "|---|---|---|---|---|",
        *(f"| {name} | {within(values, 0)} | {within(values, 2)} | {within(values, 10)} | {max(values)} |" for name, values in [("PDQ beside pdqhash", distances), ("pHash beside imagehash, a quarter of them", other["phash"]), ("dHash beside imagehash, a quarter of them", other["dhash"])]),
        "", f"PDQ's quality is off by at most 1 for {within(qualities, 1)}.", "",
        "| one thread, files to hashes | nearset, pictures per second | Pillow and pdqhash | times |", "|---|---|---|---|",
        f"| {len(chosen):,} of those above | {len(chosen) / seconds['nearset']:.0f} | {len(chosen) / seconds['pdqhash']:.0f} | {seconds['pdqhash'] / seconds['nearset']:.1f} |",
        f"| {len(large)} wallpapers, {pixels / len(large) / 1e6:.1f} megapixels on average, JPEG | {len(large) / ours['seconds']:.1f} | {len(large) / theirs:.1f} | {theirs / ours['seconds']:.1f} |",
    ]


def write(path: Path, lines: list[str], counted: tuple[dict, int], summary: dict) -> None:
    counts, files = counted
    path.parent.mkdir(parents=True, exist_ok=True)
    head = [
        "# Pictures by their hashes", "",
        f"`make bench-pictures`, {datetime.date.today()}, {os.cpu_count()} cores, Python {platform.python_version()}. {files:,} files: {counts['photo']:,} tiles of "
        f"512 x 384 of Debian's wallpapers, photographs and renderings, which don't overlap, though those of a pattern look alike, and {counts['clip art']:,} pieces of clip art on white, each with 12 distorted copies; originals with a quality below 50 were left out. "
        f"`nearset hash` by PDQ, pHash and dHash on all cores: {summary['records'] / summary['seconds']:.0f} pictures per second.", "",
    ]
    path.write_text("\n".join(head + lines) + "\n")
    print(path.read_text())


if __name__ == "__main__":
    main()
