//! The kernels of `sketch` for AVX-512.

use std::{arch::x86_64::*, mem::MaybeUninit, slice};

use super::*;

#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw")]
pub(super) fn points(key: u64, values: &mut [u64]) {
    scalar::points(key, values);
}

/// The number of slots for which [`Empty`] has a bit.
const MARKED: usize = 1024;

/// Which slots were empty at the last check, one bit each, in two registers.
#[derive(Clone, Copy)]
struct Empty([__m512i; 2]);

impl Empty {
    /// Marks the empty slots. Returns `None` if there are none.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw")]
    fn among(slots: &[u64]) -> Option<Self> {
        let mut bits = [0; MARKED / 8];
        for (eight, bits) in slots.chunks(8).zip(&mut bits) {
            let valid = u8::MAX >> (8 - eight.len());
            // SAFETY: the mask keeps the load within the chunk.
            let values = unsafe { _mm512_maskz_loadu_epi64(valid, eight.as_ptr().cast()) };
            *bits = _mm512_cmpeq_epi64_mask(values, _mm512_set1_epi64(EMPTY as i64));
        }
        // SAFETY: twice 64 bytes are loaded from 128.
        let halves =
            unsafe { [_mm512_loadu_si512(bits.as_ptr().cast()), _mm512_loadu_si512(bits.as_ptr().add(64).cast())] };
        let any = _mm512_or_si512(halves[0], halves[1]);
        (_mm512_test_epi64_mask(any, any) != 0).then_some(Self(halves))
    }

    /// Returns which of the slots in the high halves are marked.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn has(self, slots: __m512i) -> u8 {
        let words = _mm512_permutex2var_epi64(self.0[0], _mm512_srli_epi64::<{ 32 + 6 }>(slots), self.0[1]);
        // A rotation takes its count modulo 64.
        let bits = _mm512_rorv_epi64(words, _mm512_srli_epi64::<32>(slots));
        _mm512_test_epi64_mask(bits, _mm512_set1_epi64(1))
    }
}

#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512vbmi2,bmi2,popcnt")]
pub(super) fn throw(points: &[u64], multipliers: &[u64], first: usize, slots: &mut [u64]) {
    let mut batch = Batch::new();
    if slots.len() > MARKED {
        let worth_a_look = worth_a_look(slots.len());
        for (round, &multiplier) in multipliers.iter().enumerate().skip(first) {
            throw_once(points, multiplier, round, &mut batch, slots);
            if (round + 1) * points.len() >= worth_a_look && !slots.contains(&EMPTY) {
                return;
            }
        }
        return;
    }
    let mut unseen = 0;
    let mut empty = if first > 0 { Empty::among(slots) } else { None };
    for (round, &multiplier) in multipliers.iter().enumerate().skip(first) {
        match empty {
            Some(empty) => throw_at_empty(points, multiplier, round, empty, slots),
            None => throw_once(points, multiplier, round, &mut batch, slots),
        }
        unseen += points.len();
        // Between two checks some slots are taken for empty that are not. That costs time but changes no bit, since
        // they keep the least.
        if unseen >= slots.len() {
            unseen = 0;
            empty = Empty::among(slots);
            if empty.is_none() {
                return;
            }
        }
    }
}

/// Like [`throw_once`], but only at slots that were empty before: a value thrown in an earlier round is never replaced,
/// so nothing else can change. This spares most points of a late round the scattering, which takes most of the time.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,popcnt")]
fn throw_at_empty(points: &[u64], multiplier: u64, round: usize, empty: Empty, slots: &mut [u64]) {
    const SIZE: usize = 512;
    let factor = _mm512_set1_epi64(multiplier as i64);
    let range = _mm512_set1_epi64(slots.len() as i64);
    // Eight are stored at a time, but only the matches among them are counted.
    let mut hashes = [MaybeUninit::<u64>::uninit(); SIZE + 8];
    let (whole, rest) = points.as_chunks::<8>();
    for part in whole.chunks(SIZE / 8) {
        let mut found = 0;
        for eight in part {
            // SAFETY: eight words are loaded from a chunk of eight; `found` is at most 8 per chunk seen, so eight more
            // lie within the array.
            unsafe {
                let hash = _mm512_mullo_epi64(_mm512_loadu_si512(eight.as_ptr().cast()), factor);
                let hit = empty.has(_mm512_mul_epu32(_mm512_srli_epi64::<32>(hash), range));
                let packed = _mm512_maskz_compress_epi64(hit, hash);
                _mm512_storeu_si512(hashes.as_mut_ptr().add(found).cast(), packed);
                found += hit.count_ones() as usize;
            }
        }
        // SAFETY: the first `found` have been written.
        let hashes = unsafe { slice::from_raw_parts(hashes.as_ptr().cast::<u64>(), found) };
        hashes.iter().for_each(|&hash| scalar::put_least(hash, round, slots));
    }
    scalar::throw_once(rest, multiplier, round, slots);
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx512vbmi2,bmi2")]
fn throw_once(points: &[u64], multiplier: u64, round: usize, batch: &mut Batch, slots: &mut [u64]) {
    let factor = _mm512_set1_epi64(multiplier as i64);
    let range = _mm512_set1_epi64(slots.len() as i64);
    let tag = _mm512_set1_epi64(round as i64);
    let (whole, rest) = points.as_chunks::<8>();
    for part in whole.chunks(Batch::SIZE / 8) {
        let (batch_slots, _) = batch.slots.as_chunks_mut::<8>();
        let (batch_values, _) = batch.values.as_chunks_mut::<8>();
        for ((eight, slots), values) in part.iter().zip(batch_slots).zip(batch_values) {
            // SAFETY: each pointer points to eight elements of the type that is loaded or stored.
            unsafe {
                let hash = _mm512_mullo_epi64(_mm512_loadu_si512(eight.as_ptr().cast()), factor);
                let slot = _mm512_mul_epu32(_mm512_srli_epi64::<32>(hash), range);
                _mm512_storeu_si512(slots.as_mut_ptr().cast(), slot);
                // The tag is shifted in above the hash, as in `tagged`.
                let value = _mm512_shldi_epi64::<{ 64 - TAG_BITS as i32 }>(tag, hash);
                _mm512_storeu_si512(values.as_mut_ptr().cast(), value);
            }
        }
        // SAFETY: the high half of a product with `slots.len()` is below it, as in `slot_of`.
        unsafe { batch.scatter(8 * part.len(), slots) };
    }
    scalar::throw_once(rest, multiplier, round, slots);
}

#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw")]
pub(super) fn count_empty(slots: &[u64]) -> usize {
    scalar::count_empty(slots)
}

#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,popcnt")]
pub(super) fn list_empty(slots: &[u64], list: &mut Vec<u32>) -> usize {
    // Eight are stored at a time, but only the matches among them are counted.
    list.resize(list.len().max(slots.len() + 8), 0);
    let (whole, rest) = slots.as_chunks::<8>();
    let empty = _mm512_set1_epi64(EMPTY as i64);
    let mut indices = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let mut length = 0;
    for eight in whole {
        // SAFETY: eight words are loaded from a chunk of eight; `length` is at most 8 per chunk seen, so eight entries
        // from there on lie within the list.
        unsafe {
            let found = _mm512_cmpeq_epi64_mask(_mm512_loadu_si512(eight.as_ptr().cast()), empty);
            let packed = _mm256_maskz_compress_epi32(found, indices);
            _mm256_storeu_si256(list.as_mut_ptr().add(length).cast(), packed);
            length += found.count_ones() as usize;
        }
        indices = _mm256_add_epi32(indices, _mm256_set1_epi32(8));
    }
    for (slot, &value) in rest.iter().enumerate() {
        list[length] = (8 * whole.len() + slot) as u32;
        length += usize::from(value == EMPTY);
    }
    length
}

/// Returns, for each factor, the least product with any point.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw")]
fn least<const REGISTERS: usize>(points: &[u64], factors: &[[u64; 8]; REGISTERS]) -> [[u64; 8]; REGISTERS] {
    // SAFETY: eight words are loaded from an array of eight.
    let factors = factors.map(|eight| unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) });
    let mut least = [_mm512_set1_epi64(-1); REGISTERS];
    for &point in points {
        let point = _mm512_set1_epi64(point as i64);
        for (least, factors) in least.iter_mut().zip(factors) {
            *least = _mm512_min_epu64(*least, _mm512_mullo_epi64(point, factors));
        }
    }
    least.map(|least| {
        let mut eight = [0u64; 8];
        // SAFETY: eight words are stored into an array of eight.
        unsafe { _mm512_storeu_si512(eight.as_mut_ptr().cast(), least) };
        eight
    })
}

#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw")]
pub(super) fn fill(points: &[u64], multipliers: &[u64], round: usize, list: &[u32], slots: &mut [u64]) {
    let (groups, rest) = list.as_chunks::<32>();
    for group in groups {
        let least = least::<4>(points, &gather(multipliers, group));
        put(round, group, least.as_flattened(), slots);
    }
    for group in rest.chunks(8) {
        let least = least::<1>(points, &gather(multipliers, group));
        put(round, group, least.as_flattened(), slots);
    }
}

#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw")]
pub(super) fn fill_all(points: &[u64], multipliers: &[u64], round: usize, slots: &mut [u64]) {
    let (groups, rest) = slots.as_chunks_mut::<32>();
    let (factors, rest_factors) = multipliers.as_chunks::<32>();
    for (group, factors) in groups.iter_mut().zip(factors) {
        let (factors, _) = factors.as_chunks::<8>();
        let least = least::<4>(points, &[factors[0], factors[1], factors[2], factors[3]]);
        for (slot, &least) in group.iter_mut().zip(least.as_flattened()) {
            *slot = (*slot).min(tagged(round, least));
        }
    }
    scalar::fill_all(points, rest_factors, round, rest);
}

#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw")]
pub(super) fn columns(base: u64, words: &[u64], out: &mut [u64]) {
    scalar::columns(base, words, out);
}
