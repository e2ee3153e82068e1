use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::metadata::Orientation;
use image::{DynamicImage, ImageEncoder, ImageFormat, Rgb, RgbImage};

use super::*;

/// A picture with something to see in it, of any size.
fn scene(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        let (x, y) = (x * 256 / width, y * 256 / height);
        let red = (x * x / 97 + y * 2 + x * y / 150) % 256;
        let green = 255 - (x * 3 + y * y / 60) % 256;
        let blue = ((x ^ y) + (x / 40) * (y / 50) * 23) % 256;
        Rgb([red, green, blue].map(|value| value as u8))
    })
}

fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    picture.write_to(&mut file, format).unwrap();
    file.into_inner()
}

fn differing(a: &Picture, b: &Picture) -> u32 {
    a.pdq.iter().zip(b.pdq).map(|(a, b)| (a ^ b).count_ones()).sum()
}

fn bits(hex: &str) -> Vec<u32> {
    hex.chars().flat_map(|digit| (0..4).rev().map(move |bit| digit.to_digit(16).unwrap() >> bit & 1)).collect()
}

fn apart(a: &str, b: &str) -> usize {
    assert_eq!(a.len(), b.len());
    bits(a).iter().zip(bits(b)).filter(|(a, b)| **a != *b).count()
}

const FORMATS: [ImageFormat; 6] =
    [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::WebP, ImageFormat::Gif, ImageFormat::Tiff, ImageFormat::Bmp];

/// By pdqhash 0.2.8 and imagehash 4.3.2 of Python: width, height, PDQ, quality, pHash, dHash of the same pixels.
const PEERS: [(u32, u32, &str, u8, &str, &str); 5] = [
    (
        200,
        150,
        "3fea7017f2b707ca2e354f62f848509db135626056cae59fce9c2c90ce3c2db0",
        100,
        "be16de941cfc2903",
        "246ddbb649922c6a",
    ),
    (
        640,
        97,
        "afe87842f03f87ca2e976f62fc48501fb135e36056cae59f469c2c90ce3c2cb0",
        100,
        "be16de941cfc2903",
        "246ddbb649922c6a",
    ),
    (
        64,
        64,
        "afe938c2f03787ca26956f608d48581ff135e36056ca259fe69c2c90ee3c2eb4",
        100,
        "be16de841cfc2913",
        "246ddbb64992356a",
    ),
    (
        7,
        300,
        "c07f6f8168dd992c329e887e97226dc96ad54c618b25b38e319e329ce0df30dc",
        100,
        "fc1cfc0438b913ce",
        "362669966cc99639",
    ),
    (
        33,
        20,
        "873dd9e27a97d16a939a2737af4a3a1f5015a965d2c255cfc21c8690261d8ebc",
        100,
        "b61ebe0c1cf92153",
        "342449966cd2142e",
    ),
];

#[test]
fn hashes_are_those_of_the_references() {
    for (width, height, pdq, quality, phash, dhash) in PEERS {
        let file = encoded(&scene(width, height).into(), ImageFormat::Png);
        let picture = hash(&file, &Algorithm::ALL).unwrap();
        let hex = |algorithm| picture.hex(algorithm).unwrap();
        // Sums in another order may turn a frequency that is the median, or nearly.
        assert!(apart(&hex(Algorithm::Pdq), pdq) <= 2, "{width} x {height}: {} {pdq}", hex(Algorithm::Pdq));
        assert!(apart(&hex(Algorithm::PHash), phash) <= 2, "{width} x {height}: {}", hex(Algorithm::PHash));
        assert!(apart(&hex(Algorithm::DHash), dhash) <= 2, "{width} x {height}: {}", hex(Algorithm::DHash));
        assert_eq!((picture.quality, picture.width, picture.height), (quality, width, height));
    }
}

#[test]
fn symmetric_drawings_have_the_reference_s_rounding_errors() {
    let drawing = RgbImage::from_fn(120, 100, |x, y| {
        let (x, y) = ((2 * x).abs_diff(119), (2 * y).abs_diff(99));
        let value = match () {
            () if x * x + y * y < 3600 => 30,
            () if x.max(y) < 80 => 200,
            () => 255,
        };
        Rgb([value, value / 2, 255 - value])
    });
    let picture = hash(&encoded(&drawing.into(), ImageFormat::Png), &[]).unwrap();
    // By pdqhash 0.2.8; three frequencies of four are 0, or would be.
    let wanted = "4922b12c699ab51ef69cfc6b867913e5592630c9e493cd2e861c8cfb782cd2d3";
    assert!(apart(&picture.hex(Algorithm::Pdq).unwrap(), wanted) <= 10, "{:?}", picture.hex(Algorithm::Pdq));
    assert_eq!(picture.quality, 69);
}

/// PDQ's reduction as it is published: box filters over whole rows and columns, then every so many-th value.
fn published(values: &[f64], to: usize) -> Vec<f64> {
    let n = values.len();
    let window = n.div_ceil(2 * to);
    let half = (window + 2) / 2;
    let boxed = |values: &[f64]| -> Vec<f64> {
        (0..n)
            .map(|i| {
                let around = &values[i.saturating_sub(window - half)..(i + half).min(n)];
                around.iter().sum::<f64>() / around.len() as f64
            })
            .collect()
    };
    let twice = boxed(&boxed(values));
    (0..to).map(|value| twice[((value as f64 + 0.5) * n as f64 / to as f64) as usize]).collect()
}

#[test]
fn tents_are_two_box_filters() {
    for n in [5, 63, 64, 65, 100, 127, 128, 129, 500, 1000, 4001] {
        let row: Vec<u8> = (0..n).map(|i: usize| (i * i * 31 % 251) as u8).collect();
        let file = encoded(
            &DynamicImage::ImageLuma8(image::GrayImage::from_raw(n as u32, 64, row.repeat(64)).unwrap()),
            ImageFormat::Png,
        );
        let mut reduced = Vec::new();
        decode::with_pixels(&file, |pixels| {
            reduced = reduce::smooth(pixels, &Weights::tents(n, 64), &Weights::tents(64, 64));
            hash_pixels(pixels, &[])
        })
        .unwrap();
        let values: Vec<f64> = row.iter().map(|&value| value.into()).collect();
        for (found, wanted) in reduced.iter().zip(published(&values, 64)) {
            assert!((f64::from(*found) - wanted).abs() < 1e-3, "{n}: {found} {wanted}");
        }
    }
}

#[test]
fn every_format_gives_the_same_picture() {
    let scene = DynamicImage::from(scene(320, 200));
    let png = hash(&encoded(&scene, ImageFormat::Png), &[]).unwrap();
    assert_eq!(png.quality, 100);
    for format in FORMATS {
        let picture = hash(&encoded(&scene, format), &[]).unwrap();
        let most = match format {
            ImageFormat::Jpeg => 10,
            // 256 colours are all that it has.
            ImageFormat::Gif => 31,
            _ => 0,
        };
        assert!(differing(&png, &picture) <= most, "{format:?}: {}", differing(&png, &picture));
        assert_eq!((picture.width, picture.height), (320, 200), "{format:?}");
    }
    for other in [
        DynamicImage::from(scene.to_rgba8()),
        scene.to_rgb16().into(),
        scene.to_rgba16().into(),
        scene.to_luma8().into(),
        scene.to_luma_alpha8().into(),
        scene.to_luma16().into(),
    ] {
        let picture = hash(&encoded(&other, ImageFormat::Png), &[]).unwrap();
        // Greys by other weights than PDQ's.
        let most = if other.color().has_color() { 2 } else { 24 };
        assert!(differing(&png, &picture) <= most, "{:?}: {}", other.color(), differing(&png, &picture));
    }
}

/// EXIF metadata with an orientation alone.
fn exif(orientation: u8) -> Vec<u8> {
    let mut exif = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    exif
}

#[test]
fn pictures_are_turned_as_their_orientation_says() {
    let scene = DynamicImage::from(scene(240, 130));
    let upright = hash(&encoded(&scene, ImageFormat::Png), &Algorithm::ALL).unwrap();
    for orientation in 1..=8 {
        // Stored so that the orientation turns it back.
        let mut stored = scene.clone();
        let undo = match orientation {
            6 => Orientation::Rotate270,
            8 => Orientation::Rotate90,
            other => Orientation::from_exif(other).unwrap(),
        };
        stored.apply_orientation(undo);
        let (width, height, color) = (stored.width(), stored.height(), stored.color().into());
        let mut png = Vec::new();
        let mut encoder = PngEncoder::new(&mut png);
        encoder.set_exif_metadata(exif(orientation)).unwrap();
        encoder.write_image(stored.as_bytes(), width, height, color).unwrap();
        assert_eq!(hash(&png, &Algorithm::ALL).unwrap(), upright, "orientation {orientation} of a PNG");
        let mut jpeg = Vec::new();
        let mut encoder = JpegEncoder::new_with_quality(&mut jpeg, 95);
        encoder.set_exif_metadata(exif(orientation)).unwrap();
        encoder.write_image(stored.as_bytes(), width, height, color).unwrap();
        let turned = hash(&jpeg, &[]).unwrap();
        assert!(differing(&upright, &turned) <= 10, "orientation {orientation}: {}", differing(&upright, &turned));
        assert_eq!((turned.width, turned.height), (240, 130), "orientation {orientation}");
        // Left as it is stored it would be another picture.
        if orientation > 1 {
            let ignored = hash(&encoded(&stored, ImageFormat::Png), &[]).unwrap();
            assert!(differing(&upright, &ignored) > 60, "orientation {orientation}");
        }
    }
}

#[test]
fn a_file_that_is_cut_off_is_an_error_wherever_it_is_cut() {
    let scene = DynamicImage::from(scene(90, 70));
    for format in FORMATS {
        let file = encoded(&scene, format);
        for part in 0..40 {
            let cut = &file[..file.len() * part / 42];
            let error = hash(cut, &[]).expect_err(&format!("{part}/42 of {format:?}"));
            assert!(!error.to_string().contains("gave up"), "{part}/42 of {format:?}: {error}");
        }
        assert!(hash(&file, &[]).is_ok(), "{format:?}");
    }
}

/// A PNG whose header promises so many pixels.
fn promising(width: u32, height: u32) -> Vec<u8> {
    let mut file = encoded(&scene(8, 8).into(), ImageFormat::Png);
    file[16..20].copy_from_slice(&width.to_be_bytes());
    file[20..24].copy_from_slice(&height.to_be_bytes());
    let mut sum = u32::MAX;
    for &byte in &file[12..29] {
        sum ^= u32::from(byte);
        (0..8).for_each(|_| sum = sum >> 1 ^ (0xedb8_8320 & (sum & 1).wrapping_neg()));
    }
    file[29..33].copy_from_slice(&(!sum).to_be_bytes());
    file
}

#[test]
fn promises_of_pixels_are_not_believed() {
    for (width, height) in [(60_000, 60_000), (u32::MAX >> 1, 1), (1, u32::MAX >> 1), (20_000, 20_000)] {
        let error = hash(&promising(width, height), &[]).unwrap_err();
        let is_too_large = matches!(error, PictureError::TooLarge { .. } | PictureError::TooMuchMemory);
        assert!(is_too_large, "{width} x {height}: {error}");
    }
    // Few enough pixels, but a side that takes gigabytes to look at.
    for (width, height) in [(5, 12_000_000), (67_000_000, 1), (1, (1 << 17) + 1)] {
        assert_eq!(hash(&promising(width, height), &[]), Err(PictureError::TooLarge { width, height }));
    }
    // Few enough, but they do not come.
    assert!(matches!(
        hash(&promising(3000, 3000), &[]),
        Err(PictureError::CutOff { .. } | PictureError::Damaged { .. })
    ));
    let mut gif = encoded(&scene(8, 8).into(), ImageFormat::Gif);
    gif[6..10].fill(0xff);
    assert_eq!(hash(&gif, &[]), Err(PictureError::TooLarge { width: 65535, height: 65535 }));
    let mut bmp = encoded(&scene(8, 8).into(), ImageFormat::Bmp);
    bmp[18..22].copy_from_slice(&60_000u32.to_le_bytes());
    bmp[22..26].copy_from_slice(&60_000u32.to_le_bytes());
    let error = hash(&bmp, &[]).unwrap_err();
    assert!(matches!(error, PictureError::TooLarge { .. } | PictureError::Damaged { .. }), "{error}");
    let mut jpeg = encoded(&scene(8, 8).into(), ImageFormat::Jpeg);
    let frame = jpeg.windows(2).position(|marker| marker == [0xff, 0xc0]).unwrap();
    jpeg[frame + 5..frame + 9].fill(0xfe);
    assert_eq!(hash(&jpeg, &[]), Err(PictureError::TooLarge { width: 65278, height: 65278 }));
}

/// A WebP file of these chunks.
fn webp(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let mut body = b"WEBP".to_vec();
    for (kind, content) in chunks {
        body.extend_from_slice(*kind);
        body.extend((content.len() as u32).to_le_bytes());
        body.extend_from_slice(content);
        body.resize(body.len().next_multiple_of(2), 0);
    }
    [&b"RIFF"[..], &(body.len() as u32).to_le_bytes(), &body].concat()
}

/// A lossless WebP picture of 8 x 8 pixels, without its file's head; and a canvas of that size with EXIF metadata.
fn webp_parts() -> (Vec<u8>, [u8; 10]) {
    let file = encoded(&scene(8, 8).into(), ImageFormat::WebP);
    (file[20..].to_vec(), [8, 0, 0, 0, 7, 0, 0, 7, 0, 0])
}

#[test]
fn parts_of_a_webp_file_are_no_larger_than_what_is_there() {
    let (lossless, canvas) = webp_parts();
    let good = webp(&[(b"VP8X", &canvas), (b"VP8L", &lossless), (b"EXIF", &exif(1))]);
    assert!(hash(&good, &[]).is_ok());
    // What lies behind the file is no part of it.
    assert_eq!(hash(&[&good[..], b"EXIF\xff\xff\xff\xff"].concat(), &[]), hash(&good, &[]));
    let mut long = good.clone();
    let exif_size = good.len() - exif(1).len() - 4;
    long[exif_size..exif_size + 4].fill(0xff);
    assert_eq!(hash(&long, &[]), Err(PictureError::CutOff { format: "WebP" }));
    // A lossy frame of 16383 x 16383 pixels, alone and in an animation.
    let frame = [0x10, 0, 0, 0x9d, 1, 0x2a, 0xff, 0x3f, 0xff, 0x3f, 0, 0, 0, 0];
    let mut animated = vec![0; 16];
    (animated[6], animated[9]) = (7, 7);
    animated.extend(&webp(&[(b"VP8 ", &frame)])[12..]);
    let moving = [2, 0, 0, 0, 7, 0, 0, 7, 0, 0];
    let still = [0, 0, 0, 0, 7, 0, 0, 7, 0, 0];
    for file in [
        webp(&[(b"VP8X", &still), (b"VP8 ", &frame)]),
        webp(&[(b"VP8X", &moving), (b"ANIM", &[0; 6]), (b"ANMF", &animated)]),
    ] {
        let error = hash(&file, &[]).unwrap_err().to_string();
        assert!(error.contains("a frame of 16383 x 16383 pixels, and a canvas of 8 x 8"), "{error}");
    }
}

#[test]
fn what_turns_out_to_be_large_waits_for_its_turn() {
    // A canvas of 8 x 8 pixels, on which a frame of 5000 x 5000 is drawn.
    let mut gif = encoded(&scene(8, 8).into(), ImageFormat::Gif);
    let frame = gif.windows(9).position(|part| part == [0x2c, 0, 0, 0, 0, 8, 0, 8, 0]).unwrap();
    gif[frame + 5..frame + 9].copy_from_slice(&[0x88, 0x13, 0x88, 0x13]);
    let decoded = decode::decode(&gif, (ImageFormat::Gif, "GIF"), decode::LARGE);
    assert_eq!(decoded.err(), Some(PictureError::TooMuchMemory));
    assert_ne!(hash(&gif, &[]), Err(PictureError::TooMuchMemory));
    // What its header says, with as much memory as it takes.
    let file = encoded(&scene(90, 70).into(), ImageFormat::Tiff);
    for (bytes, fits) in [(90 * 70 * 3 - 1, false), (1 << 20, true)] {
        let decoded = decode::decode(&file, (ImageFormat::Tiff, "TIFF"), bytes);
        assert_eq!(decoded.is_ok(), fits, "{bytes}");
    }
}

#[test]
fn metadata_may_begin_as_in_a_jpeg() {
    let prefixed = |orientation| [&b"Exif\0\0"[..], &exif(orientation)].concat();
    let (lossless, canvas) = webp_parts();
    let file = |exif: &[u8]| webp(&[(b"VP8X", &canvas), (b"VP8L", &lossless), (b"EXIF", exif)]);
    let turned = hash(&file(&exif(6)), &Algorithm::ALL).unwrap();
    assert_eq!(hash(&file(&prefixed(6)), &Algorithm::ALL).unwrap(), turned);
    assert_ne!(hash(&file(&prefixed(1)), &Algorithm::ALL).unwrap(), turned);
    let mut png = Vec::new();
    let mut encoder = PngEncoder::new(&mut png);
    encoder.set_exif_metadata(prefixed(6)).unwrap();
    encoder.write_image(&[7; 30], 5, 2, image::ExtendedColorType::Rgb8).unwrap();
    let picture = hash(&png, &[]).unwrap();
    assert_eq!((picture.width, picture.height), (2, 5));
}

#[test]
fn damaged_files_are_errors_or_pictures_and_never_the_end() {
    let scene = DynamicImage::from(scene(40, 30));
    // Fixed, so that red means a bug.
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random as usize
    };
    for format in FORMATS {
        let file = encoded(&scene, format);
        for _ in 0..300 {
            let mut damaged = file.clone();
            for _ in 0..1 + next() % 4 {
                let at = next() % damaged.len();
                damaged[at] = next() as u8;
            }
            let _ = hash(&damaged, &Algorithm::ALL);
        }
    }
}

#[test]
fn what_is_no_picture_is_named_so() {
    assert_eq!(hash(b"", &[]), Err(PictureError::Empty));
    for other in [&b"just a text"[..], b"%PDF-1.7", b"<svg xmlns='http://www.w3.org/2000/svg'/>", &[0; 100]] {
        assert_eq!(hash(other, &[]), Err(PictureError::Unknown));
        assert!(!is_picture(other, false));
    }
    assert!(!is_picture(b"BMW built its first", false));
    for format in FORMATS {
        let head = &encoded(&scene(8, 8).into(), format)[..16];
        assert!(is_picture(head, false), "{format:?}");
        // Cameras' raw files begin so.
        assert_eq!(is_picture(head, true), format != ImageFormat::Tiff, "{format:?}");
    }
}

#[test]
fn what_is_transparent_is_white() {
    let drawn = image::RgbaImage::from_fn(150, 120, |x, y| {
        let inside = (x / 30 + y / 24) % 3 == 0;
        // Below what is transparent, colours mean nothing.
        if inside { image::Rgba([x as u8, 20, y as u8, 255]) } else { image::Rgba([0, (x * y) as u8, 0, 0]) }
    });
    let seen = RgbImage::from_fn(150, 120, |x, y| match drawn.get_pixel(x, y).0 {
        [red, green, blue, 255] => Rgb([red, green, blue]),
        _ => Rgb([255; 3]),
    });
    let seen = hash(&encoded(&seen.into(), ImageFormat::Png), &Algorithm::ALL).unwrap();
    for drawn in [DynamicImage::from(drawn.clone()), DynamicImage::from(drawn).to_rgba16().into()] {
        assert_eq!(hash(&encoded(&drawn, ImageFormat::Png), &Algorithm::ALL).unwrap(), seen);
    }
}

#[test]
fn flat_pictures_have_no_quality() {
    let flat = DynamicImage::from(RgbImage::from_pixel(200, 100, Rgb([90, 120, 30])));
    assert_eq!(hash(&encoded(&flat, ImageFormat::Png), &[]).unwrap().quality, 0);
    let faint = RgbImage::from_fn(200, 100, |x, _| Rgb([x as u8 / 50; 3]));
    assert!(hash(&encoded(&faint.into(), ImageFormat::Png), &[]).unwrap().quality < LEAST_QUALITY);
    let speck = hash(&encoded(&scene(4, 4).into(), ImageFormat::Png), &[]).unwrap();
    assert_eq!((speck.pdq, speck.quality), ([0; 32], 0));
}

#[test]
fn of_an_animation_the_first_picture_counts() {
    let first = DynamicImage::from(scene(60, 50));
    let mut gif = Vec::new();
    {
        let mut encoder = image::codecs::gif::GifEncoder::new(&mut gif);
        let frames = [first.to_rgba8(), first.flipv().to_rgba8(), first.fliph().to_rgba8()];
        encoder.encode_frames(frames.into_iter().map(image::Frame::new)).unwrap();
    }
    let alone = hash(&encoded(&first, ImageFormat::Gif), &[]).unwrap();
    assert!(differing(&hash(&gif, &[]).unwrap(), &alone) <= 2);
    // However many follow, and whatever they are: all but the trailer once, then frames of one pixel.
    let mut long = encoded(&first, ImageFormat::Gif);
    assert_eq!(long.pop(), Some(0x3b));
    let pixel = [0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0];
    (0..300_000).for_each(|_| long.extend(pixel));
    long.push(0x3b);
    assert_eq!(hash(&long, &[]).unwrap(), alone);
}
