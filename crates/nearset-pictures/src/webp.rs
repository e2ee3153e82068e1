//! What a WebP file says of its parts, looked at before its decoder believes it.
//!
//! Claim: each chunk of a file with a canvas is there to its end, and no frame is larger than the canvas. The decoder makes room for either
//! on the file's word, and compares it afterwards.
//! Not here: files of one picture without a canvas, of which it makes room for one size only.

use crate::decode::PictureError;

const FORMAT: &str = "WebP";

/// Returns the file without what lies behind its last chunk.
///
/// # Errors
/// If it is cut off, or a frame is larger than its canvas.
pub fn checked(file: &[u8]) -> Result<&[u8], PictureError> {
    let Some((head, chunks)) = file.split_first_chunk::<12>() else {
        return Err(PictureError::CutOff { format: FORMAT });
    };
    let [_, _, _, _, size @ .., _, _, _, _] = *head;
    let size = (u32::from_le_bytes(size) as usize).saturating_sub(4);
    let chunks = &chunks[..size.min(chunks.len())];
    // The chunk's head, flags, and the canvas, which stands as one less than it is.
    let Some(&[b'V', b'P', b'8', b'X', _, _, _, _, _, _, _, _, w0, w1, w2, h0, h1, h2]) = chunks.first_chunk() else {
        return Ok(file);
    };
    let canvas = [[w0, w1, w2, 0], [h0, h1, h2, 0]].map(|side| u64::from(u32::from_le_bytes(side)) + 1);
    each_chunk(chunks, |kind, content| match kind {
        // What comes before the frame's own chunks is where it lies.
        b"ANMF" => each_chunk(content.get(16..).unwrap_or_default(), |kind, content| fits(kind, content, canvas)),
        _ => fits(kind, content, canvas),
    })?;
    Ok(&file[..head.len() + chunks.len()])
}

/// Calls `see` with the kind of each chunk and what it holds.
fn each_chunk(
    mut bytes: &[u8],
    mut see: impl FnMut(&[u8; 4], &[u8]) -> Result<(), PictureError>,
) -> Result<(), PictureError> {
    while let Some((&[a, b, c, d, size @ ..], rest)) = bytes.split_first_chunk::<8>() {
        let size = u32::from_le_bytes(size) as usize;
        let content = rest.get(..size).ok_or(PictureError::CutOff { format: FORMAT })?;
        see(&[a, b, c, d], content)?;
        bytes = rest.get(size.next_multiple_of(2)..).unwrap_or_default();
    }
    Ok(())
}

/// Checks that a lossy frame fits on its canvas; of others the decoder does.
fn fits(kind: &[u8; 4], content: &[u8], canvas: [u64; 2]) -> Result<(), PictureError> {
    // Six bytes of a frame's head, then its sides and how they are to be scaled.
    let (b"VP8 ", Some(&[_, _, _, _, _, _, w0, w1, h0, h1])) = (kind, content.first_chunk()) else { return Ok(()) };
    let frame = [[w0, w1], [h0, h1]].map(|side| u64::from(u16::from_le_bytes(side) & 0x3fff));
    if frame[0] <= canvas[0] && frame[1] <= canvas[1] {
        return Ok(());
    }
    let why = format!("a frame of {} x {} pixels, and a canvas of {} x {}", frame[0], frame[1], canvas[0], canvas[1]);
    Err(PictureError::Damaged { format: FORMAT, why })
}
