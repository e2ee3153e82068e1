//! Perceptual hashes of pictures: bit strings that differ in few places where pictures look alike.
//!
//! - PDQ (Facebook, 2019: "The TMK+PDQF Video-Hashing Algorithm and the PDQ Image-Hashing Algorithm"): 256 bits and a quality of 0 to 100.
//! - pHash (Zauner 2010) and dHash, 64 bits each, as Python's `imagehash` computes them.
//!
//! Claim: a file that is no picture, is cut off or asks for more memory than [`MOST_PIXELS`] take is an error that says which; nothing is
//! allocated on the word of a file. The same file gives the same hashes on every platform.
//! Invariant: a picture is hashed as it is looked at, turned as its EXIF orientation says. Of animations and of files with several pages the
//! first picture counts. What is transparent is seen on white; colour profiles are ignored.
//! Not here: reading files, and comparing hashes (`nearset`).
//!
//! ```
//! // A picture of 2 x 2 pixels in the simplest of formats.
//! let mut bmp = b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x02\0\0\0\x02\0\0\0\x01\0\x18\0".to_vec();
//! bmp.resize(54, 0);
//! bmp.extend([255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 0, 0]);
//! let picture = nearset_pictures::hash(&bmp, &[])?;
//! assert_eq!((picture.width, picture.height), (2, 2));
//! // Too small to tell anything.
//! assert_eq!(picture.quality, 0);
//! # Ok::<(), nearset_pictures::PictureError>(())
//! ```

mod dct;
mod decode;
mod reduce;
mod webp;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Mutex;

pub use decode::{MOST_PIXELS, PictureError, is_picture};

use decode::Pixels;
use reduce::Weights;

/// The least quality at which a PDQ hash is worth comparing; below, unrelated pictures have hashes near each other.
pub const LEAST_QUALITY: u8 = 50;

/// A way to hash pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// PDQ, 256 bits.
    Pdq,
    /// pHash, 64 bits.
    PHash,
    /// dHash, 64 bits.
    DHash,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 3] = [Algorithm::Pdq, Algorithm::PHash, Algorithm::DHash];

    /// Returns its name, as [`Algorithm::from_str`] takes it.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Pdq => "pdq",
            Algorithm::PHash => "phash",
            Algorithm::DHash => "dhash",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|algorithm| algorithm.name() == name);
        named.ok_or_else(|| format!("no hash of pictures is called {name:?}: use pdq, phash or dhash"))
    }
}

/// What is known of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Picture {
    /// Pixels from left to right, as the picture is looked at.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
    /// PDQ, as it is written in hexadecimal digits from the left.
    pub pdq: [u8; 32],
    /// How much there is to see, from 0 to 100, by PDQ's measure.
    pub quality: u8,
    /// pHash, if it was wanted.
    pub phash: Option<u64>,
    /// dHash, if it was wanted.
    pub dhash: Option<u64>,
}

impl Picture {
    /// Returns a hash in hexadecimal digits, if it was wanted.
    pub fn hex(&self, algorithm: Algorithm) -> Option<String> {
        match algorithm {
            Algorithm::Pdq => Some(self.pdq.iter().map(|byte| format!("{byte:02x}")).collect()),
            Algorithm::PHash => self.phash.map(|hash| format!("{hash:016x}")),
            Algorithm::DHash => self.dhash.map(|hash| format!("{hash:016x}")),
        }
    }
}

/// Hashes the picture in a file: by PDQ, and by what else is wanted.
///
/// # Errors
/// If it is no picture, or one that can't be decoded.
pub fn hash(file: &[u8], also: &[Algorithm]) -> Result<Picture, PictureError> {
    decode::with_pixels(file, |pixels| hash_pixels(pixels, also))
}

/// Sides below this are too short to be hashed, and have no quality.
const SHORTEST_SIDE: usize = 5;

fn hash_pixels(pixels: &Pixels<'_>, also: &[Algorithm]) -> Picture {
    let (width, height) = (pixels.width, pixels.height);
    let (pdq, quality) = if width < SHORTEST_SIDE || height < SHORTEST_SIDE {
        ([0; 32], 0)
    } else {
        let mut reduced = reduce::smooth(pixels, &Weights::tents(width, PDQ_SIDE), &Weights::tents(height, PDQ_SIDE));
        let mut frequencies = dct::frequencies(&reduced, PDQ_SIDE, PDQ_FREQUENCIES);
        if is_ambiguous(&frequencies) && width * height <= MOST_STEPPED {
            let bytes = width * height * reduce::STEPPED_BYTES;
            let _one = (bytes as u64 > decode::LARGE).then(|| decode::alone(&ONE_STEPPED));
            reduced = reduce::step_by_step(pixels, PDQ_SIDE);
            frequencies = dct::frequencies(&reduced, PDQ_SIDE, PDQ_FREQUENCIES);
        }
        (pdq(&frequencies), quality(&reduced))
    };
    let lanczos = |columns: usize, rows: usize| {
        reduce::rounded(pixels, &Weights::lanczos(width, columns), &Weights::lanczos(height, rows))
    };
    let wants = |algorithm| also.contains(&algorithm);
    Picture {
        width: width as u32,
        height: height as u32,
        pdq,
        quality,
        phash: wants(Algorithm::PHash).then(|| phash(&lanczos(PHASH_SIDE, PHASH_SIDE))),
        dhash: wants(Algorithm::DHash).then(|| dhash(&lanczos(DHASH_SIDE + 1, DHASH_SIDE))),
    }
}

/// Rows and columns that PDQ reduces a picture to.
const PDQ_SIDE: usize = 64;

/// The frequencies that PDQ looks at, along rows and columns: all but the lowest.
const PDQ_FREQUENCIES: Range<usize> = 1..17;

/// Pixels up to which a picture is reduced step by step where that matters.
const MOST_STEPPED: usize = 32 << 20;

/// Few pictures are, so that others need not wait while they are decoded. Who holds it may hold the lock on large pictures, and never the
/// other way round.
static ONE_STEPPED: Mutex<()> = Mutex::new(());

/// Returns whether many frequencies are as good as the median. Of a symmetric drawing half of them are nothing but rounding errors, which
/// only those who make the same ones agree about.
fn is_ambiguous(frequencies: &[f32]) -> bool {
    let median = lower_median(frequencies);
    frequencies.iter().filter(|frequency| (**frequency - median).abs() < 0.02).count() > 4
}

/// Of an even number of values, the lower of the two in the middle.
fn lower_median(values: &[f32]) -> f32 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    sorted[sorted.len() / 2 - 1]
}

/// Bit `16 i + j` says whether frequency `(i, j)` is above the median; the highest bit comes first.
fn pdq(frequencies: &[f32]) -> [u8; 32] {
    let median = lower_median(frequencies);
    let mut hash = [0; 32];
    for (bit, _) in frequencies.iter().enumerate().filter(|(_, frequency)| **frequency > median) {
        hash[31 - bit / 8] |= 1 << (bit % 8);
    }
    hash
}

/// Steps between neighbours in hundredths of the way from black to white, small ones not counted.
fn quality(reduced: &[f32]) -> u8 {
    let step = |a: f32, b: f32| (((a - b) * 100.0) / 255.0).trunc().abs() as u32;
    let mut steps = 0;
    for i in 0..PDQ_SIDE {
        for j in 0..PDQ_SIDE - 1 {
            steps += step(reduced[i * PDQ_SIDE + j], reduced[i * PDQ_SIDE + j + 1]);
            steps += step(reduced[j * PDQ_SIDE + i], reduced[(j + 1) * PDQ_SIDE + i]);
        }
    }
    (steps / 90).min(100) as u8
}

/// Rows and columns that pHash reduces a picture to.
const PHASH_SIDE: usize = 32;

/// The 64 lowest frequencies, each a bit: is it above the median?
fn phash(reduced: &[f32]) -> u64 {
    let frequencies = dct::frequencies(reduced, PHASH_SIDE, 0..8);
    let mut sorted = frequencies.clone();
    sorted.sort_unstable_by(f32::total_cmp);
    let median = f32::midpoint(sorted[31], sorted[32]);
    bits(frequencies.iter().map(|&frequency| frequency > median))
}

/// Rows that dHash reduces a picture to; columns are one more.
const DHASH_SIDE: usize = 8;

/// Does it become lighter from each pixel to the next in its row?
fn dhash(reduced: &[f32]) -> u64 {
    bits(reduced.chunks_exact(DHASH_SIDE + 1).flat_map(|row| row.windows(2).map(|pair| pair[1] > pair[0])))
}

/// The first one is the highest.
fn bits(bits: impl Iterator<Item = bool>) -> u64 {
    bits.fold(0, |word, bit| word << 1 | u64::from(bit))
}

#[cfg(test)]
mod tests;
