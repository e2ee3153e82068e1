"""Writes tails.tsv: binomial tails to 17 digits, by exact integers rounded once to 120 decimal digits a term.

    python3 tails.py > tails.tsv

`p` is the exact value of the nearest 64-bit float to what is written.
"""

from decimal import Decimal, getcontext
from math import comb

getcontext().prec = 120
getcontext().Emin = -10**17
NEGLIGIBLE = Decimal(10) ** -60


def pmf(n, p, k):
    return Decimal(comb(n, k)) * p**k * (1 - p) ** (n - k)


def walk(n, p, k, step, stop):
    """Sums the terms from k until they fall below what counts."""
    if k == stop:
        return Decimal(0)
    term = pmf(n, p, k)
    total = Decimal(0)
    while k != stop:
        total += term
        if step > 0:
            term = term * (n - k) / (k + 1) * (p / (1 - p))
            falling = k > n * p
        else:
            term = term * k / (n - k + 1) * ((1 - p) / p)
            falling = k < n * p
        k += step
        if falling and term < total * NEGLIGIBLE:
            break
    return total


CASES = [
    (1, 0.25, [0, 1, 2]),
    (5, 0.109375, [1, 3, 5]),
    (20, 0.3, [0, 2, 6, 15, 20]),
    (25, 1e-12, [1, 2, 10, 25]),
    (64, 0.5, [8, 22, 32, 60]),
    (100, 0.999, [50, 95, 100]),
    (268, 0.6236, [150, 170, 186, 240]),
    (1000, 0.001, [1, 2, 12, 100]),
    (5000, 0.3, [1000, 1300, 1490, 1501, 1600, 1800, 2500]),
    (5000, 0.9, [3000, 4300, 4500, 4600, 4900]),
    (5000, 1e-6, [1, 3, 8]),
    (1_000_000, 0.2, [195_000, 200_000, 203_000, 212_000]),
    (1_000_000, 1e-6, [1, 5, 60]),
]

print("trials\tp\tthreshold\tat_least\tbelow")
for n, p, thresholds in CASES:
    for t in thresholds:
        exact = Decimal(p)
        upper = walk(n, exact, t, 1, n + 1)
        lower = walk(n, exact, t - 1, -1, -1)
        assert abs(upper + lower - 1) < Decimal(10) ** -50, (n, p, t)
        print(n, repr(p), t, *(f"{tail:.17e}" if tail else "0" for tail in (upper, lower)), sep="\t")
