//! Pixels out of files that nobody vouches for.
//!
//! Invariant: what a header says is compared with [`MOST_PIXELS`] and [`MOST_SIDE`] before anything is allocated for it. What takes more than
//! [`LARGE`], by its header or once it is decoded, is decoded one at a time, whatever the number of threads.

use std::io::Cursor;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, MutexGuard, PoisonError};

use image::error::{ImageError, LimitErrorKind};
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};

use crate::{Picture, webp};

/// The most pixels of a picture that is decoded: above what cameras take, and below what a machine has no memory for.
pub const MOST_PIXELS: u64 = 128 << 20;

/// The most pixels along a side. Time and memory go by it too, and a row of a million equal pixels is a file of a kilobyte.
const MOST_SIDE: u32 = 1 << 17;

/// The most bytes of a decoded picture. Few have more than 4 bytes per pixel, and a decoder needs about as much again.
const MOST_BYTES: u64 = 512 << 20;

/// Bytes above which pictures wait for each other.
pub const LARGE: u64 = 64 << 20;

static ONE_LARGE: Mutex<()> = Mutex::new(());

/// Waits until nobody else holds the lock.
pub fn alone(lock: &Mutex<()>) -> MutexGuard<'_, ()> {
    // A poisoned lock guards nothing.
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a file gives no hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum PictureError {
    #[error("an empty file: fetch it again")]
    Empty,
    #[error(
        "not a JPEG, PNG, WebP, GIF, TIFF or BMP picture by its first bytes: convert it to one of them, or name pictures only"
    )]
    Unknown,
    #[error(
        "{width} x {height} pixels, and at most {} million are decoded, {MOST_SIDE} along a side and {} MB in memory: scale it down first",
        MOST_PIXELS >> 20,
        MOST_BYTES >> 20
    )]
    TooLarge { width: u32, height: u32 },
    #[error("it asks for more memory than {} MB: scale it down, or save it anew without what is not needed", MOST_BYTES >> 20)]
    TooMuchMemory,
    #[error("the {format} picture is cut off: fetch it again")]
    CutOff { format: &'static str },
    #[error("the {format} picture is damaged ({why}): fetch it again, or open it in another program and save it anew")]
    Damaged { format: &'static str, why: String },
    #[error("a kind of {format} that is not decoded ({why}): convert it first")]
    Unsupported { format: &'static str, why: String },
}

/// The formats that are decoded, and what messages call them.
const FORMATS: [(ImageFormat, &str); 6] = [
    (ImageFormat::Jpeg, "JPEG"),
    (ImageFormat::Png, "PNG"),
    (ImageFormat::WebP, "WebP"),
    (ImageFormat::Gif, "GIF"),
    (ImageFormat::Tiff, "TIFF"),
    (ImageFormat::Bmp, "BMP"),
];

fn format_of(head: &[u8]) -> Option<(ImageFormat, &'static str)> {
    let guessed = image::guess_format(head).ok()?;
    FORMATS.into_iter().find(|(format, _)| *format == guessed)
}

/// Returns whether the first bytes of a file, a dozen or more, are those of a picture. `is_named` says that its name has an ending which is no
/// picture's: what begins as TIFF does may then be a camera's raw file, of which only the preview would be seen.
pub fn is_picture(head: &[u8], is_named: bool) -> bool {
    match format_of(head) {
        // Two letters begin many a text; the bytes behind the size are 0 in every picture.
        Some((ImageFormat::Bmp, _)) => head.get(6..10) == Some(&[0; 4]),
        Some((ImageFormat::Tiff, _)) => !is_named,
        other => other.is_some(),
    }
}

/// Decodes a picture and calls `see` with its pixels, turned as they are to be looked at.
pub fn with_pixels(file: &[u8], see: impl FnOnce(&Pixels<'_>) -> Picture) -> Result<Picture, PictureError> {
    if file.is_empty() {
        return Err(PictureError::Empty);
    }
    let (format, name) = format_of(file).ok_or(PictureError::Unknown)?;
    let file = match format {
        ImageFormat::Jpeg if !has_jpeg_end(file) => return Err(PictureError::CutOff { format: name }),
        ImageFormat::WebP => webp::checked(file)?,
        _ => file,
    };
    // A decoder that meets what its authors did not think of is no reason to end a run over a million pictures.
    let worked = panic::catch_unwind(AssertUnwindSafe(|| {
        let _one;
        let decoded = match decode(file, (format, name), LARGE) {
            Err(PictureError::TooMuchMemory) => {
                _one = alone(&ONE_LARGE);
                decode(file, (format, name), MOST_BYTES)?
            }
            decoded => decoded?,
        };
        Ok(see(&Pixels::new(&decoded)))
    }));
    worked.unwrap_or_else(|_| Err(PictureError::Damaged { format: name, why: "its decoder gave up".to_owned() }))
}

/// Decodes a picture for which so much memory is enough.
pub fn decode(
    file: &[u8],
    (format, name): (ImageFormat, &'static str),
    most_bytes: u64,
) -> Result<DynamicImage, PictureError> {
    let mut reader = ImageReader::with_format(Cursor::new(file), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(most_bytes);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|error| explain(error, name))?;
    let (width, height) = decoder.dimensions();
    let (pixels, bytes) = (u64::from(width) * u64::from(height), decoder.total_bytes());
    if width.max(height) > MOST_SIDE || pixels > MOST_PIXELS || bytes > MOST_BYTES {
        return Err(PictureError::TooLarge { width, height });
    }
    if pixels == 0 {
        return Err(PictureError::Damaged { format: name, why: "it has no pixels".to_owned() });
    }
    if bytes > most_bytes {
        return Err(PictureError::TooMuchMemory);
    }
    let orientation = match format {
        // Some write it as it stands in a JPEG.
        ImageFormat::WebP | ImageFormat::Png => decoder.exif_metadata().map(|exif| {
            exif.and_then(|exif| Orientation::from_exif_chunk(exif.strip_prefix(b"Exif\0\0").unwrap_or(&exif)))
        }),
        _ => decoder.orientation().map(Some),
    };
    let orientation = match orientation {
        Err(error @ ImageError::Limits(_)) => return Err(explain(error, name)),
        other => other.ok().flatten().unwrap_or(Orientation::NoTransforms),
    };
    let mut decoded = DynamicImage::from_decoder(decoder).map_err(|error| explain(error, name))?;
    decoded.apply_orientation(orientation);
    Ok(in_bytes(decoded))
}

/// Whether the file has an end of image that belongs to its own picture and not to a preview inside. Decoders fill up what is missing with
/// grey instead.
fn has_jpeg_end(file: &[u8]) -> bool {
    let mut at = 2;
    while let Some(found) = file.get(at..).and_then(|rest| memchr::memchr(0xff, rest)) {
        at += found;
        match file.get(at + 1) {
            Some(0xd9) => return true,
            // One more before a marker.
            Some(0xff) => at += 1,
            // A byte of data, and markers without a length.
            Some(0x00 | 0x01 | 0xd0..=0xd8) => at += 2,
            Some(_) => match file.get(at + 2..at + 4) {
                Some(length) => at += 2 + usize::from(u16::from_be_bytes([length[0], length[1]])),
                None => return false,
            },
            None => return false,
        }
    }
    false
}

fn explain(error: ImageError, format: &'static str) -> PictureError {
    match error {
        ImageError::Limits(error) if error.kind() == LimitErrorKind::InsufficientMemory => PictureError::TooMuchMemory,
        ImageError::Limits(_) => PictureError::TooMuchMemory,
        ImageError::Unsupported(error) => PictureError::Unsupported { format, why: error.to_string() },
        ImageError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            PictureError::CutOff { format }
        }
        other => {
            let why = other.to_string();
            // Decoders that have no type for it.
            let is_end = ["unexpected end", "UnexpectedEof", "failed to fill whole buffer", "unexpected EOF"];
            if is_end.iter().any(|words| why.contains(words)) {
                return PictureError::CutOff { format };
            }
            PictureError::Damaged { format, why }
        }
    }
}

/// The same picture in bytes.
fn in_bytes(picture: DynamicImage) -> DynamicImage {
    match picture {
        DynamicImage::ImageLuma8(_)
        | DynamicImage::ImageLumaA8(_)
        | DynamicImage::ImageRgb8(_)
        | DynamicImage::ImageRgba8(_) => picture,
        DynamicImage::ImageLuma16(_) => DynamicImage::ImageLuma8(picture.into_luma8()),
        DynamicImage::ImageLumaA16(_) => DynamicImage::ImageLumaA8(picture.into_luma_alpha8()),
        other if other.color().has_alpha() => DynamicImage::ImageRgba8(other.into_rgba8()),
        other => DynamicImage::ImageRgb8(other.into_rgb8()),
    }
}

/// A decoded picture.
pub struct Pixels<'a> {
    pub width: usize,
    pub height: usize,
    bytes: &'a [u8],
    /// 1 or 2 for grey, 3 or 4 for colours; the last of an even number is how opaque.
    channels: usize,
}

impl<'a> Pixels<'a> {
    fn new(picture: &'a DynamicImage) -> Self {
        Self {
            width: picture.width() as usize,
            height: picture.height() as usize,
            bytes: picture.as_bytes(),
            channels: usize::from(picture.color().channel_count()),
        }
    }

    /// Sets `row` to the luminance of row `y`, from 0 to 255.
    pub fn luminance(&self, y: usize, row: &mut [f32]) {
        let luminance =
            |[red, green, blue]: [u8; 3]| 0.299 * f32::from(red) + 0.587 * f32::from(green) + 0.114 * f32::from(blue);
        self.read(y, row, luminance);
    }

    /// Sets `row` to the luminance of row `y`, rounded once.
    pub fn exact_luminance(&self, y: usize, row: &mut [f32]) {
        let luminance = |[red, green, blue]: [u8; 3]| {
            (f64::from(red) * 0.299 + f64::from(green) * 0.587 + f64::from(blue) * 0.114) as f32
        };
        self.read(y, row, luminance);
    }

    /// Sets `row` to the grey values of row `y`, in whole numbers as Pillow rounds them where nothing is transparent.
    pub fn grey(&self, y: usize, row: &mut [f32]) {
        let grey = |[red, green, blue]: [u8; 3]| {
            ((u32::from(red) * 19595 + u32::from(green) * 38470 + u32::from(blue) * 7471 + 0x8000) >> 16) as f32
        };
        self.read(y, row, grey);
    }

    fn read(&self, y: usize, row: &mut [f32], grey: impl Fn([u8; 3]) -> f32) {
        let length = self.width * self.channels;
        let bytes = &self.bytes[y * length..(y + 1) * length];
        match self.channels {
            1 => row.iter_mut().zip(bytes).for_each(|(value, &byte)| *value = grey([byte; 3])),
            2 => {
                let (pixels, _) = bytes.as_chunks::<2>();
                row.iter_mut()
                    .zip(pixels)
                    .for_each(|(value, &[shade, opacity])| *value = on_white(grey([shade; 3]), opacity));
            }
            3 => {
                let (pixels, _) = bytes.as_chunks::<3>();
                row.iter_mut().zip(pixels).for_each(|(value, &pixel)| *value = grey(pixel));
            }
            _ => {
                let (pixels, _) = bytes.as_chunks::<4>();
                row.iter_mut().zip(pixels).for_each(|(value, &[red, green, blue, opacity])| {
                    *value = on_white(grey([red, green, blue]), opacity);
                });
            }
        }
    }
}

/// A grey value as it is seen on white.
fn on_white(grey: f32, opacity: u8) -> f32 {
    let opacity = f32::from(opacity) / 255.0;
    grey * opacity + 255.0 * (1.0 - opacity)
}
