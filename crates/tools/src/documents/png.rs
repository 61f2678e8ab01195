//! PNG pictures.
//!
//! Invariant: any bytes give a picture or `None`, never a panic. Interlaced pictures and those of 16 bits are not read.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use super::picture::Picture;

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Width and height.
pub(super) fn size(bytes: &[u8]) -> Option<(usize, usize)> {
    let head = bytes.strip_prefix(SIGNATURE)?.get(8..16)?;
    let number = |at: usize| {
        head.get(at..at + 4).map(|four| four.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    };
    Some((number(0)?, number(4)?)).filter(|(width, height)| *width > 0 && *height > 0)
}

pub(super) fn decode(bytes: &[u8]) -> Option<Picture> {
    let (width, height) = size(bytes)?;
    let (mut palette, mut packed, mut kind) = (Vec::new(), Vec::new(), None);
    let mut rest = bytes.strip_prefix(SIGNATURE)?;
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (name, data) = (after.get(..4)?, after.get(4..4_usize.checked_add(length)?)?);
        match name {
            // Depth, kind of color, and no second way of anything.
            b"IHDR" => kind = Some((*data.get(8)?, *data.get(9)?, *data.get(12)?)),
            b"PLTE" => palette = data.to_vec(),
            b"IDAT" => packed.extend_from_slice(data),
            _ => {}
        }
        rest = after.get(length + 8..)?;
    }
    let Some((8, color, 0)) = kind else { return None };
    let channels = match color {
        0 | 3 => 1,
        2 => 3,
        4 => 2,
        6 => 4,
        _ => return None,
    };
    let row = width * channels;
    let mut lines = Vec::with_capacity((row + 1) * height);
    ZlibDecoder::new(packed.as_slice()).take(((row + 1) * height) as u64).read_to_end(&mut lines).ok()?;
    let pixels = unfilter(&lines, row, channels, height)?;
    drop(lines);
    let picture = Picture { width, height, channels, pixels };
    Some(if color == 3 { with_palette(&picture, &palette)? } else { picture })
}

/// Each line was written as a difference to its neighbors.
fn unfilter(lines: &[u8], row: usize, channels: usize, height: usize) -> Option<Vec<u8>> {
    let mut pixels = vec![0_u8; row * height];
    for (number, line) in lines.chunks_exact(row + 1).take(height).enumerate() {
        let (filter, start) = (line[0], number * row);
        for at in 0..row {
            let left = if at >= channels { pixels[start + at - channels] } else { 0 };
            let above = if number > 0 { pixels[start + at - row] } else { 0 };
            let corner = if number > 0 && at >= channels { pixels[start + at - row - channels] } else { 0 };
            let guess = match filter {
                0 => 0,
                1 => left,
                2 => above,
                3 => u8::midpoint(left, above),
                4 => nearest(left, above, corner),
                _ => return None,
            };
            pixels[start + at] = line[at + 1].wrapping_add(guess);
        }
    }
    (lines.len() == (row + 1) * height).then_some(pixels)
}

/// The neighbor that a straight line through the three leads to.
fn nearest(left: u8, above: u8, corner: u8) -> u8 {
    let aim = i16::from(left) + i16::from(above) - i16::from(corner);
    let away = |value: u8| (aim - i16::from(value)).abs();
    if away(left) <= away(above) && away(left) <= away(corner) {
        left
    } else if away(above) <= away(corner) {
        above
    } else {
        corner
    }
}

/// The colors of the palette; parts that it makes transparent are opaque, which a model does not miss.
fn with_palette(picture: &Picture, palette: &[u8]) -> Option<Picture> {
    let mut pixels = Vec::with_capacity(picture.pixels.len() * 3);
    for index in &picture.pixels {
        let at = usize::from(*index) * 3;
        pixels.extend_from_slice(palette.get(at..at + 3)?);
    }
    Some(Picture { channels: 3, pixels, ..*picture })
}

pub(super) fn encode(picture: &Picture) -> Option<Vec<u8>> {
    let color = match picture.channels {
        1 => 0,
        2 => 4,
        3 => 2,
        _ => 6,
    };
    let row = picture.width * picture.channels;
    let mut lines = ZlibEncoder::new(Vec::new(), Compression::default());
    for (number, line) in picture.pixels.chunks_exact(row).enumerate() {
        let above = |at: usize| if number > 0 { picture.pixels[(number - 1) * row + at] } else { 0 };
        let differences: Vec<u8> =
            line.iter().enumerate().map(|(at, value)| value.wrapping_sub(above(at))).collect();
        lines.write_all(&[2]).ok()?;
        lines.write_all(&differences).ok()?;
    }
    let side = |length: usize| u32::try_from(length).ok().map(u32::to_be_bytes);
    let mut head = [side(picture.width)?, side(picture.height)?].concat();
    head.extend([8, color, 0, 0, 0]);
    let mut out = SIGNATURE.to_vec();
    for (name, data) in [(b"IHDR", head), (b"IDAT", lines.finish().ok()?), (b"IEND", Vec::new())] {
        let mut check = flate2::Crc::new();
        check.update(name);
        check.update(&data);
        out.extend(side(data.len())?);
        out.extend_from_slice(name);
        out.extend_from_slice(&data);
        out.extend(check.sum().to_be_bytes());
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_is_undone() {
        // Two lines of three gray pixels for each filter, all of them 10, 20, 30.
        for (filter, line) in
            [(0, [10, 20, 30]), (1, [10, 10, 10]), (2, [0, 0, 0]), (3, [5, 5, 5]), (4, [0, 0, 0])]
        {
            let lines = [[0, 10, 20, 30].to_vec(), [vec![filter], line.to_vec()].concat()].concat();
            assert_eq!(unfilter(&lines, 3, 1, 2).unwrap(), [10, 20, 30, 10, 20, 30], "{filter}");
        }
        assert_eq!(unfilter(&[9, 1, 2, 3], 3, 1, 1), None);
    }
}
