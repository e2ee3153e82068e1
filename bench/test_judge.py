"""Tests that the judge counts correctly: `python3 -m unittest discover -s bench`."""

import tempfile
import unittest
from pathlib import Path

from judge import BINS, Truth, bin_name, judge

SIMILARITIES = {"a": 0.0, "b": 0.1, "c": 0.55, "d": 0.79, "e": 0.8, "f": 0.84, "g": 0.97, "h": 1.0}


class Judging(unittest.TestCase):
    def setUp(self):
        self.truth = Truth(dict(SIMILARITIES), text_bytes=8)

    def test_what_is_near_and_dropped_is_found(self):
        verdict = judge(self.truth, kept={"a", "c", "d", "e", "f"})
        # Of e, f, g and h two are dropped; of the three that are dropped, b is unrelated to everything before it.
        self.assertEqual((verdict.dropped, verdict.recall, verdict.precision), (3, 0.5, 2 / 3))
        self.assertEqual(verdict.unrelated_dropped, 1)

    def test_bins_hold_each_document_once_and_copies_apart(self):
        verdict = judge(self.truth, kept=set())
        sizes = dict(zip((bin_name(*b) for b in BINS), (of for _, of in verdict.hit_rates)))
        self.assertEqual(sizes["0.8 to 0.85"], 2)
        self.assertEqual((sizes["0.95 to 1"], sizes["1"]), (1, 1))
        self.assertEqual(sum(sizes.values()), sum(s >= 0.5 for s in SIMILARITIES.values()))
        self.assertTrue(all(hit == of for hit, of in verdict.hit_rates))

    def test_nothing_dropped_does_not_divide_by_zero(self):
        verdict = judge(self.truth, kept=set(SIMILARITIES))
        self.assertEqual((verdict.dropped, verdict.recall, verdict.precision), (0, 0.0, 0.0))

    def test_an_output_of_another_corpus_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "such as stranger"):
            judge(self.truth, kept={"a", "stranger"})

    def test_truth_is_read_and_ids_are_unique(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "truth.tsv"
            path.write_text("a\t0.000000\t5\nb\t0.812500\t7\n")
            truth = Truth.read(path)
            self.assertEqual((truth.nearest, truth.text_bytes), ({"a": 0.0, "b": 0.8125}, 12))
            path.write_text("a\t0.0\t5\na\t0.0\t5\n")
            with self.assertRaisesRegex(SystemExit, "occurs twice"):
                Truth.read(path)


if __name__ == "__main__":
    unittest.main()
