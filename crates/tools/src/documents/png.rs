//! Makes large PNG pictures smaller, to the size that models look at. Other pictures stay as they are.
//!
//! Invariants: any bytes give a picture or `None`, never a panic; no more memory than a picture of [`MAX_PIXELS`] takes;
//! the sides keep their proportion.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

/// Models scale down what is larger, and some refuse it.
const LONGEST_SIDE: usize = 2_000;
/// Larger pictures are left alone.
const MAX_PIXELS: usize = 16 << 20;
const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Pixels of 8 bits a channel.
struct Picture {
    width: usize,
    height: usize,
    channels: usize,
    pixels: Vec<u8>,
}

/// The same picture with sides that models take; `None` where it is small enough or of a kind that is not read here.
pub(crate) fn fitted(bytes: &[u8]) -> Option<Vec<u8>> {
    let (width, height) = size(bytes)?;
    if width.max(height) <= LONGEST_SIDE || width.checked_mul(height)? > MAX_PIXELS {
        return None;
    }
    let picture = decode(bytes)?;
    let longest = picture.width.max(picture.height);
    let side = |length: usize| (length * LONGEST_SIDE / longest).max(1);
    let small = scale(&picture, side(picture.width), side(picture.height));
    encode(&small)
}

fn size(bytes: &[u8]) -> Option<(usize, usize)> {
    let head = bytes.strip_prefix(SIGNATURE)?.get(8..16)?;
    let number = |at: usize| {
        head.get(at..at + 4).map(|four| four.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    };
    Some((number(0)?, number(4)?)).filter(|(width, height)| *width > 0 && *height > 0)
}

fn decode(bytes: &[u8]) -> Option<Picture> {
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

/// Each new pixel is the mean of those in its place.
fn scale(picture: &Picture, width: usize, height: usize) -> Picture {
    let channels = picture.channels;
    let mut pixels = Vec::with_capacity(width * height * channels);
    let span = |at: usize, new: usize, old: usize| {
        let start = at * old / new;
        start..((at + 1) * old / new).max(start + 1).min(old)
    };
    for y in 0..height {
        let rows = span(y, height, picture.height);
        for x in 0..width {
            let columns = span(x, width, picture.width);
            for channel in 0..channels {
                let values = rows.clone().flat_map(|row| {
                    let line = row * picture.width;
                    columns.clone().map(move |column| (line + column) * channels + channel)
                });
                let (sum, count) = values
                    .fold((0_u64, 0), |(sum, count), at| (sum + u64::from(picture.pixels[at]), count + 1));
                pixels.push(u8::try_from(sum / count).unwrap_or(u8::MAX));
            }
        }
    }
    Picture { width, height, channels, pixels }
}

fn encode(picture: &Picture) -> Option<Vec<u8>> {
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

    fn picture(width: usize, height: usize, channels: usize) -> Picture {
        let value = |at: usize| u8::try_from(at / channels % width * 255 / width).unwrap();
        Picture { width, height, channels, pixels: (0..width * height * channels).map(value).collect() }
    }

    #[test]
    fn a_large_picture_is_scaled_and_a_small_one_is_not() {
        for channels in [1, 2, 3, 4] {
            let large = encode(&picture(4_000, 100, channels)).unwrap();
            let small = fitted(&large).unwrap();
            assert_eq!(size(&small), Some((2_000, 50)));
            let read = decode(&small).unwrap();
            // Brighter from left to right, as before.
            let at = |x: usize| read.pixels[(25 * 2_000 + x) * channels];
            assert!(at(10) < at(1_000) && at(1_000) < at(1_990), "{} {} {}", at(10), at(1_000), at(1_990));
            assert_eq!(fitted(&encode(&picture(2_000, 30, channels)).unwrap()), None);
        }
    }

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

    #[test]
    fn broken_pictures_are_left_alone() {
        let whole = encode(&picture(2_100, 10, 3)).unwrap();
        for length in 0..whole.len() - 12 {
            assert_eq!(fitted(&whole[..length]), None, "{length}");
        }
        let mut interlaced = whole.clone();
        interlaced[28] = 1;
        assert_eq!(fitted(&interlaced), None);
        let mut huge = whole;
        huge[16..24].copy_from_slice(&[0xff; 8]);
        assert_eq!(fitted(&huge), None);
    }
}
