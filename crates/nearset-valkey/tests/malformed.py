"""Commands that must be refused, drawn at random: each is wrong by construction, whatever else is random about it."""

from __future__ import annotations

import random
import struct

import redis
from filters import RESERVE, dump, item_of, pairs

# Filters small enough that a damaged copy is sent in no time, by the metric of their items.
FILTERS = {
    b"text": ("jaccard", ["METRIC", "jaccard", "NEAR", "0.8", "CAPACITY", "20"]),
    b"hash": ("hamming", [*RESERVE["hamming"][:7], "100", "LENGTH", "256"]),
    b"window": ("hamming", [*RESERVE["hamming"][:7], "50", "LENGTH", "256", "EXPIRE-AFTER", "2", "GENERATIONS"]),
    b"exact": ("hamming", [*RESERVE["hamming-exact"][:7], "100", "LENGTH", "256", "MAXFN", "0"]),
    b"vector": ("cosine", RESERVE["cosine"]),
}
# Indexes, by the metric of their items.
INDEXES = {
    b"index:text": ("jaccard", ["METRIC", "jaccard", "NEAR", "0.6", "CAPACITY", "100"]),
    b"index:hash": ("hamming", ["METRIC", "hamming", "NEAR", "20", "LENGTH", "256"]),
    b"index:vector": ("cosine", RESERVE["cosine"]),
}
FOREIGN = [b"a-string", b"a-list", b"a-hash"]
HALF = b"half-loaded"

READS = [
    b"NEAR.EXISTS",
    b"NEAR.MEXISTS",
    b"NEAR.HITS",
    b"NEAR.EXISTSKEYS",
    b"NEAR.CARD",
    b"NEAR.INFO",
    b"NEAR.SPEC",
    b"NEAR.DUMP",
]
WRITES = [b"NEAR.RESERVE", b"NEAR.WINDOW", b"NEAR.ADD", b"NEAR.MADD", b"NEAR.ADDKEYS", b"NEAR.MERGE", b"NEAR.LOAD"]
OF_INDEXES = [b"NEAR.INDEX." + name for name in (b"RESERVE", b"ADD", b"SEARCH", b"GET", b"REM", b"CARD", b"INFO", b"LOAD", b"DUMP")]
OF_ITEMS = [b"NEAR.ADD", b"NEAR.MADD", b"NEAR.EXISTS", b"NEAR.MEXISTS", b"NEAR.HITS"]
NEED_A_KEY = [
    b"NEAR.ADD",
    b"NEAR.MADD",
    b"NEAR.HITS",
    b"NEAR.INFO",
    b"NEAR.SPEC",
    b"NEAR.DUMP",
    b"NEAR.ADDKEYS",
    b"NEAR.MERGE",
    b"NEAR.WINDOW",
]
# The fewest arguments after the name, and the most where there is such a number.
ARITY = {
    **{name: (2, None) for name in [*OF_ITEMS, b"NEAR.ADDKEYS", b"NEAR.EXISTSKEYS", b"NEAR.MERGE"]},
    b"NEAR.RESERVE": (6, None),
    b"NEAR.WINDOW": (2, 6),
    b"NEAR.CARD": (1, 1),
    b"NEAR.SPEC": (1, 1),
    b"NEAR.INFO": (1, 2),
    b"NEAR.DUMP": (2, 4),
    b"NEAR.LOAD": (3, 4),
    b"NEAR.INSERT": (7, None),
    b"NEAR.INDEX.RESERVE": (3, None),
    b"NEAR.INDEX.ADD": (3, None),
    b"NEAR.INDEX.SEARCH": (2, None),
    b"NEAR.INDEX.REM": (2, None),
    b"NEAR.INDEX.GET": (2, 2),
    b"NEAR.INDEX.CARD": (1, 1),
    b"NEAR.INDEX.INFO": (1, 2),
    b"NEAR.INDEX.LOAD": (3, 3),
    b"NEAR.INDEX.DUMP": (2, 4),
}

NO_NUMBER = [
    b"",
    b"x",
    b"0x10",
    b"1e3",
    b"--1",
    b"1 ",
    b"\x00",
    b"nan",
    b"NaN",
    b"inf",
    b"-inf",
    b"\xff\xfe",
    b"1,5",
    b"9" * 400,
]
NO_COUNT = [*NO_NUMBER, b"-1", b"1.5", b"18446744073709551616", b"-9223372036854775809", b"99999999999999999999999"]
NO_SIMILARITY = [b"", b"x", b"nan", b"inf", b"-inf", b"-1", b"1.0001", b"1e999", b"\xff", b"0x1", b"9" * 400]
WORDS = [b"METRIC", b"jaccard", b"HITS", b"VALUES", b"FP32", b"0", b"1", b"REPLACE", b"COUNT", b"DESCRIPTION", *FILTERS]
SPECIAL = [float("nan"), float("inf"), float("-inf")]
NO_WISHES = [
    [b""],
    [b"BOGUS", b"1"],
    [b"LENGTH", b"64"],
    [b"EXPIRE-AFTER", b"0", b"GENERATIONS"],
    [b"WHENFULL", b"PANIC"],
    [b"SHINGLE", b"lines:5"],
    [b"SHINGLE", b"words:0"],
    [b"BACKGROUND", b"7"],
    [b"MINIMISE", b"\x00"],
]
DIMENSION, LENGTH = 32, 32


def encode(arguments: list[bytes]) -> bytes:
    """A command as the protocol has it."""
    return b"*%d\r\n" % len(arguments) + b"".join([b"$%d\r\n%b\r\n" % (len(part), part) for part in arguments])


class Malformed:
    """Draws commands for a server that `prepare` has filled."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        draw = self.draw
        everything = FILTERS | INDEXES
        self.items = {key: [item_of(name, draw) for _ in range(30)] for key, (name, _) in everything.items()}
        self.kinds = [
            (self.soup_on_what_is_no_filter, 15),
            (self.soup_on_what_is_being_loaded, 5),
            (self.wrong_arity, 10),
            (self.no_such_key, 8),
            (self.wrong_item, 25),
            (self.wrong_keys, 8),
            (self.wrong_wishes, 12),
            (self.wrong_position, 7),
            (self.damaged_load, 5),
            (self.wrong_merge, 4),
            (self.wrong_insert, 4),
            (self.wrong_index, 25),
            (self.wrong_name, 1),
        ]
        self.weights = [weight for _, weight in self.kinds]
        self.kinds = [kind for kind, _ in self.kinds]

    def prepare(self, client: redis.Redis) -> None:
        """Fills an empty server."""
        self.dumps, self.descriptions, self.bands = {}, [], {}
        for key, (_, options) in FILTERS.items():
            promise = pairs(client.execute_command("NEAR.RESERVE", key, *options))
            client.execute_command("NEAR.MADD", key, *self.items[key])
            self.dumps[key] = dump(client, key)[0][1]
            self.descriptions.append(pairs(client.execute_command("NEAR.SPEC", key))["description"])
            self.bands[key] = promise.get("bands", 1)
        for key, (_, options) in INDEXES.items():
            client.execute_command("NEAR.INDEX.RESERVE", key, *options)
            entries = [part for i, item in enumerate(self.items[key]) for part in (f"id {i}", item)]
            client.execute_command("NEAR.INDEX.ADD", key, *entries)
        client.execute_command("NEAR.LOAD", HALF, 0, self.dumps[b"text"][:200])
        client.set(FOREIGN[0], "x")
        client.rpush(FOREIGN[1], "x")
        client.hset(FOREIGN[2], "x", "y")

    def commands(self, count: int) -> list[list[bytes]]:
        """Each must be answered by an error."""
        return [kind() for kind in self.draw.choices(self.kinds, self.weights, k=count)]

    def key(self) -> bytes:
        return self.draw.choice(list(FILTERS))

    def soup(self) -> list[bytes]:
        """Up to six arguments of any kind, rarely a very large one."""
        draw = self.draw
        if draw.random() < 0.0005:
            return [draw.randbytes(1 << 10) * (1 << 10)]
        piece = [lambda: draw.choice(WORDS), lambda: draw.choice(NO_COUNT), lambda: draw.randbytes(draw.randrange(50))]
        return [draw.choice(piece)() for _ in range(draw.randrange(7))]

    def soup_on_what_is_no_filter(self) -> list[bytes]:
        draw = self.draw
        if draw.random() < 0.3:
            return [draw.choice(OF_INDEXES), draw.choice([*FOREIGN, HALF, *FILTERS]), *self.soup()]
        return [draw.choice(READS + WRITES), draw.choice([*FOREIGN, *INDEXES]), *self.soup()]

    def soup_on_what_is_being_loaded(self) -> list[bytes]:
        return [self.draw.choice(READS + WRITES[:-1]), HALF, *self.soup()]

    def wrong_arity(self) -> list[bytes]:
        draw = self.draw
        name = draw.choice(list(ARITY))
        fewest, most = ARITY[name]
        count = draw.randrange(fewest) if most is None or draw.random() < 0.5 else most + draw.randrange(1, 20)
        key = self.key()
        return [name, key, *draw.choices(self.items[key], k=count)][: count + 1]

    def no_such_key(self) -> list[bytes]:
        name, key = self.draw.choice(NEED_A_KEY), self.key()
        return [
            name,
            b"absent",
            *([b"absent"] if name == b"NEAR.MERGE" else [self.draw.choice(self.items[key])][: ARITY[name][0] - 1]),
        ]

    def wrong_item(self) -> list[bytes]:
        """One or, where several may come, one among good ones; the key must be as it was."""
        draw, key = self.draw, self.key()
        name = draw.choice(OF_ITEMS)
        before, after = [], []
        if name in (b"NEAR.MADD", b"NEAR.MEXISTS"):
            before = draw.choices(self.items[key], k=draw.randrange(4))
            after = draw.choices(self.items[key], k=draw.randrange(3))
        wrong = {b"text": self.no_text, b"vector": self.no_vector}.get(key, self.no_hash)()
        # What comes after a vector in numbers could be read as some of them.
        return [name, key, *before, *wrong, *([] if wrong[0] == b"VALUES" else after)]

    def no_text(self) -> list[bytes]:
        draw = self.draw
        if draw.random() < 0.001:
            return [b"word " * (1 << 16) + b"\xff"]
        good = bytearray(draw.choice(self.items[b"text"]))
        good[draw.randrange(len(good))] = draw.randrange(0x80, 0x100)
        return [bytes(good)]

    def no_hash(self) -> list[bytes]:
        draw = self.draw
        if draw.random() < 0.3:
            digits = bytearray(draw.randbytes(LENGTH).hex().encode())
            digits[draw.randrange(2 * LENGTH)] = draw.choice(b"gG -\x00\xff/:@`")
            return [bytes(digits)]
        length = draw.choice(
            [draw.randrange(LENGTH), draw.randrange(LENGTH + 1, 2 * LENGTH), draw.randrange(2 * LENGTH + 1, 300)]
        )
        return [draw.randbytes(length)]

    def no_vector(self) -> list[bytes]:
        draw = self.draw
        roll = draw.random()
        if roll < 0.3:
            components = list(struct.unpack(f"<{DIMENSION}f", draw.choice(self.items[b"vector"])))
            components[draw.randrange(DIMENSION)] = draw.choice(SPECIAL)
            if roll < 0.15:
                return [b"VALUES", b"%d" % DIMENSION, *(b"%r" % x for x in components)]
            return [struct.pack(f"<{DIMENSION}f", *components)]
        if roll < 0.35:
            return [bytes(4 * DIMENSION)]
        if roll < 0.6:
            return [b"VALUES", draw.choice([*NO_COUNT, b"0", b"31", b"33", b"4294967296"])]
        if roll < 0.7:
            return [
                b"VALUES",
                b"%d" % DIMENSION,
                *([b"1"] * (DIMENSION - 1)),
                draw.choice([b"x", b"", b"\xff", b"1 ", b"nan"]),
            ]
        length = draw.choice([n for n in (draw.randrange(128), draw.randrange(129, 400)) if n not in (4, 6)] or [5])
        return [draw.randbytes(length)]

    def wrong_keys(self) -> list[bytes]:
        draw, key = self.draw, self.key()
        hits = [b"HITS"] if draw.random() < 0.3 else []
        name = draw.choice([b"NEAR.ADDKEYS", b"NEAR.EXISTSKEYS"])
        right = 8 * self.bands[key]
        good = [draw.randbytes(right)] * draw.randrange(3)
        wrong = draw.choice([draw.randrange(5, right), draw.randrange(right + 1, 2 * right + 8)])
        return [name, key, *hits, *good, draw.randbytes(wrong)]

    def wrong_wishes(self) -> list[bytes]:
        """For a filter that would be new, unless one of the wishes is wrong."""
        draw = self.draw
        if draw.random() < 0.1:
            return [b"NEAR.RESERVE", self.key(), *map(str.encode, FILTERS[b"hash"][1])]
        if draw.random() < 0.15:
            return [b"NEAR.RESERVE", b"new", b"DESCRIPTION", self.damaged(draw.choice(self.descriptions))]
        wishes = {
            b"METRIC": b"jaccard",
            b"NEAR": b"0.8",
            b"FAR": b"0.4",
            b"CAPACITY": b"100",
            b"MAXFN": b"0.02",
            b"SEED": b"7",
        }
        wrong = {
            b"METRIC": [b"", b"edit", b"jaccard ", b"\xff", b"hamming", b"cosine", b"0.8"],
            b"NEAR": NO_SIMILARITY,
            b"FAR": [*NO_SIMILARITY, b"0.8", b"0.9"],
            b"CAPACITY": [*NO_COUNT, b"0"],
            b"MAXFN": [b"", b"x", b"nan", b"-0.1", b"1.5", b"inf"],
            b"SEED": [b"", b"x", b"-1", b"1.5", b"g" * 32, b"1" * 33],
        }
        name = draw.choice(list(wishes))
        roll = draw.random()
        if roll < 0.6:
            wishes[name] = draw.choice(wrong[name])
        options = list(wishes.items())
        draw.shuffle(options)
        flat = [part for option in options for part in option]
        if roll < 0.6:
            return [b"NEAR.RESERVE", b"new", *flat]
        if roll < 0.7:
            return [b"NEAR.RESERVE", b"new", *flat[:-1]]
        if roll < 0.8:
            return [b"NEAR.RESERVE", b"new", *flat, name, wishes[name]]
        if roll < 0.9:
            missing = draw.choice([b"METRIC", b"NEAR", b"CAPACITY"])
            return [b"NEAR.RESERVE", b"new", *(part for option in options if option[0] != missing for part in option)]
        return [b"NEAR.RESERVE", b"new", *flat, *draw.choice(NO_WISHES)]

    def wrong_position(self) -> list[bytes]:
        draw, key = self.draw, self.key()
        roll = draw.random()
        if roll < 0.3:
            beyond = draw.choice([draw.randrange(1 << 24, 1 << 48), draw.randrange(1 << 63, 1 << 64)])
            return [b"NEAR.DUMP", key, draw.choice([*NO_COUNT, b"%d" % beyond])]
        if roll < 0.6:
            return [b"NEAR.DUMP", key, b"0", b"COUNT", draw.choice([*NO_COUNT, b"0", b"16777217"])]
        if roll < 0.8:
            return [b"NEAR.LOAD", key, draw.choice(NO_COUNT), self.dumps[key], b"REPLACE"]
        # Nothing is being loaded there that a later chunk could belong to.
        return [
            b"NEAR.LOAD",
            draw.choice([key, b"new"]),
            b"%d" % draw.randrange(1, 1 << 63),
            draw.randbytes(draw.randrange(40)),
            b"REPLACE",
        ]

    def damaged(self, file: bytes) -> bytes:
        """Beyond the header, which says how long the file is and whose damage another test looks at."""
        spoilt = bytearray(file)
        for _ in range(self.draw.randrange(1, 4)):
            spoilt[self.draw.randrange(64, len(spoilt))] = self.draw.randrange(256)
        if spoilt == file:
            spoilt[64] ^= 1
        return bytes(spoilt)

    def damaged_load(self) -> list[bytes]:
        draw, key = self.draw, self.draw.choice([b"text", b"hash", b"window", b"exact"])
        roll = draw.random()
        if roll < 0.6:
            return [b"NEAR.LOAD", draw.choice([key, b"new"]), b"0", self.damaged(self.dumps[key]), b"REPLACE"]
        if roll < 0.7:
            return [
                b"NEAR.LOAD",
                draw.choice([key, b"new"]),
                b"0",
                self.dumps[key] + draw.randbytes(draw.randrange(1, 50)),
                b"REPLACE",
            ]
        if roll < 0.8:
            return [b"NEAR.LOAD", key, b"0", self.dumps[key]]
        if roll < 0.9:
            return [b"NEAR.LOAD", draw.choice([key, b"new"]), b"0", self.dumps[key][: draw.randrange(24)], b"REPLACE"]
        return [b"NEAR.LOAD", draw.choice([key, b"new"]), b"0", draw.randbytes(draw.randrange(300)), b"REPLACE"]

    def wrong_merge(self) -> list[bytes]:
        draw = self.draw
        first, second = draw.sample(list(FILTERS), 2)
        last = draw.choice([second, HALF, b"absent", draw.choice(FOREIGN)])
        return [
            b"NEAR.MERGE",
            draw.choice([first, b"new", HALF, draw.choice(FOREIGN)]),
            *([first] * draw.randrange(1, 3)),
            last,
        ]

    def wrong_insert(self) -> list[bytes]:
        """Into a filter that is there or would be made, unless an item or a wish is wrong, or there is no item."""
        draw, key = self.draw, self.key()
        wishes = list(map(str.encode, FILTERS[key][1]))
        wrong = {b"text": self.no_text, b"vector": self.no_vector}.get(key, self.no_hash)()
        roll = draw.random()
        if roll < 0.2:
            return [b"NEAR.INSERT", draw.choice([key, b"new"]), *wishes, *draw.choice([[], [b"ITEMS"]])]
        if roll < 0.4:
            return [b"NEAR.INSERT", b"new", *wishes, *draw.choice(NO_WISHES[:2]), b"ITEMS", self.items[key][0]]
        good = draw.choices(self.items[key], k=draw.randrange(3))
        # Planning takes most of the time.
        return [b"NEAR.INSERT", b"new" if roll < 0.41 else key, *wishes, b"ITEMS", *good, *wrong]

    def wrong_index(self) -> list[bytes]:
        draw, key = self.draw, self.draw.choice(list(INDEXES))
        roll = draw.random()
        wrong = {b"index:text": self.no_text, b"index:vector": self.no_vector}.get(key, self.no_hash)()
        good = draw.choice(self.items[key])
        before = [part for i in range(draw.randrange(3)) for part in (b"new %d" % i, draw.choice(self.items[key]))]
        after = [] if wrong[0] == b"VALUES" else [b"later", good]
        if roll < 0.3:
            return [b"NEAR.INDEX.ADD", key, *before, b"wrong", *wrong, *after]
        if roll < 0.4:
            return [b"NEAR.INDEX.ADD", key, *before, draw.choice([b"", b"\xff", b"\xc3\x28"]), good, *after]
        if roll < 0.45:
            return [b"NEAR.INDEX.ADD", key, *before, b"without an item"]
        if roll < 0.6:
            return [b"NEAR.INDEX.SEARCH", key, *wrong]
        if roll < 0.75:
            options = [
                [b"K", draw.choice([*NO_COUNT, b"0", b"10001"])],
                [b"WITHIN", draw.choice([b"", b"x", b"nan", b"inf", b"-inf", b"-2", b"257", b"\xff", b"9" * 400])],
                [draw.choice([b"K", b"WITHIN", b"LIMIT"])],
                [b"LIMIT", b"1"],
                [b"K", b"1", b"K", b"1"],
            ]
            return [b"NEAR.INDEX.SEARCH", key, good, *draw.choice(options)]
        if roll < 0.8:
            return [b"NEAR.INDEX.INFO", draw.choice([key, b"absent"]), draw.choice([b"colour", b"", b"\xff"])]
        if roll < 0.85:
            return [draw.choice([b"NEAR.INDEX.GET", b"NEAR.INDEX.REM"]), key, draw.choice([b"", b"\xff"])]
        if roll < 0.9:
            return [b"NEAR.INDEX.ADD", b"absent", b"id", good]
        if roll < 0.95:
            damaged = [self.dumps[b"text"], draw.randbytes(draw.randrange(300)), self.damaged(self.dumps[b"hash"])]
            if draw.random() < 0.5:
                return [b"NEAR.INDEX.RESERVE", b"new", b"DESCRIPTION", draw.choice(damaged)]
            return [b"NEAR.INDEX.LOAD", key, draw.choice([b"0", b"7", b"x", b"-1"]), draw.choice(damaged)]
        wishes = list(map(str.encode, INDEXES[key][1]))
        if draw.random() < 0.3:
            return [b"NEAR.INDEX.RESERVE", key, *wishes]
        more = [[b"MAXFP", b"0.1"], [b"WHENFULL", b"GROW"], [b"EXPIRE-AFTER", b"5"], [b"METRIC", b"l1"], *NO_WISHES[:2]]
        return [b"NEAR.INDEX.RESERVE", b"new", *wishes, *draw.choice(more)]

    def wrong_name(self) -> list[bytes]:
        draw = self.draw
        return [
            draw.choice([b"NEAR.", b"NEAR.ADDS", b"NEAR.FLUSH", b"NEAR.\x00", b"NEAR.RESERVE ", b"NEAR:ADD"]),
            self.key(),
            *self.soup(),
        ]

    def twisted_reads(self, count: int) -> list[list[bytes]]:
        """Commands that only look, parts of them dropped, doubled, swapped, cut, flipped, replaced. Some stay sound."""
        draw, twisted = self.draw, []
        for _ in range(count):
            key = self.key()
            name = draw.choice(READS)
            if draw.random() < 0.3:
                key, name = draw.choice(list(INDEXES)), b"NEAR.INDEX." + draw.choice([b"SEARCH", b"GET", b"CARD", b"INFO"])
            ends = draw.choice([[], [b"0"], [b"items"], [b"COUNT", b"99"], [b"K", b"3"], [b"WITHIN", b"0.5"]])
            parts = [name, key, *draw.choices(self.items[key], k=draw.randrange(4)), *ends]
            for _ in range(draw.randrange(1, 4)):
                at = draw.randrange(1, len(parts)) if len(parts) > 1 else 0
                twist = draw.randrange(6)
                if twist == 0 and at:
                    del parts[at]
                elif twist == 1:
                    parts.insert(at, parts[at]) if at else parts.append(b"0")
                elif twist == 2 and at:
                    other = draw.randrange(1, len(parts))
                    parts[at], parts[other] = parts[other], parts[at]
                elif twist == 3 and at:
                    parts[at] = parts[at][: draw.randrange(len(parts[at]) + 1)]
                elif twist == 4 and at and parts[at]:
                    flipped = bytearray(parts[at])
                    flipped[draw.randrange(len(flipped))] ^= 1 << draw.randrange(8)
                    parts[at] = bytes(flipped)
                elif at:
                    parts[at] = draw.choice([*NO_COUNT, *FOREIGN, HALF, b"absent", b"VALUES", b"HITS"])
            twisted.append(parts)
        return twisted
