//! Kernels, dispatched at run time by CPU features. This is the only place with `unsafe` code.
//!
//! Claim: every level gives the same bits. The scalar twin is the definition; property tests compare the others with it
//! on random and adversarial input, and sums of floats are taken in one fixed order that all levels share.
//! Not here: anything that knows what a hash family or a filter is.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

pub(crate) mod dot;
pub(crate) mod hadamard;
mod hamming;
pub(crate) mod line;
pub(crate) mod places;
pub(crate) mod ranked;
pub(crate) mod sketch;
pub(crate) mod text;

pub(crate) use hamming::{cross_within, hamming, scan_within, select_within};

/// A set of instructions for which kernels are written, ordered from the plainest up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub(crate) enum Level {
    /// Plain Rust, available everywhere: the definition.
    Scalar,
    /// x86-64 with AVX2, BMI2 and POPCNT.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ, VL, VBMI2 and VPOPCNTDQ.
    Avx512,
}

const SCALAR: u8 = Level::Scalar as u8;
const AVX2: u8 = Level::Avx2 as u8;
const AVX512: u8 = Level::Avx512 as u8;

impl Level {
    /// Returns the levels that this CPU has, the plainest first.
    #[cfg(test)]
    pub(crate) fn available() -> impl Iterator<Item = Level> {
        let best = Level::detected();
        [Level::Scalar, Level::Avx2, Level::Avx512].into_iter().filter(move |&level| level <= best)
    }

    /// Returns the level that kernels use: the best that this CPU has.
    #[inline]
    pub(crate) fn current() -> Level {
        #[cfg(test)]
        if let Some(level) = FORCED.get() {
            return level;
        }
        Level::detected()
    }

    /// Detects the level once and then only loads it: short kernels would otherwise spend their time on detection.
    #[inline(always)]
    fn detected() -> Level {
        static DETECTED: AtomicU8 = AtomicU8::new(u8::MAX);

        #[cold]
        fn unlikely() {}

        #[cold]
        fn detect() -> Level {
            let level = Level::detect().min(Level::allowed());
            DETECTED.store(level as u8, Relaxed);
            level
        }

        // The best level first, the others out of its way: on CPUs that have it, the choice takes one comparison.
        let level = DETECTED.load(Relaxed);
        if level == AVX512 {
            return Level::Avx512;
        }
        unlikely();
        match level {
            AVX2 => Level::Avx2,
            SCALAR => Level::Scalar,
            _ => detect(),
        }
    }

    /// The best level that may be used: `NEARSET_KERNELS=avx2` or `scalar` makes a CPU as slow as one that has no better, to measure
    /// that. Answers don't depend on it.
    fn allowed() -> Level {
        match std::env::var("NEARSET_KERNELS").as_deref() {
            Ok("scalar") => Level::Scalar,
            Ok("avx2") => Level::Avx2,
            _ => Level::Avx512,
        }
    }

    /// Detects the best level. `Avx512` implies that AVX2, BMI1, BMI2 and POPCNT are available too.
    fn detect() -> Level {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt")
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vbmi2")
                && is_x86_feature_detected!("avx512vpopcntdq")
            {
                return Level::Avx512;
            }
            return Level::Avx2;
        }
        Level::Scalar
    }
}

#[cfg(test)]
thread_local! {
    static FORCED: std::cell::Cell<Option<Level>> = const { std::cell::Cell::new(None) };
}

/// Runs `work` with the kernels of one level, on this thread.
#[cfg(test)]
pub(crate) fn at_level<T>(level: Level, work: impl FnOnce() -> T) -> T {
    let before = FORCED.replace(Some(level));
    let result = work();
    FORCED.set(before);
    result
}
