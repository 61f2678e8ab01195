//! JPEG pictures: read with zune-jpeg, written here in the simplest form that every model reads (baseline, no subsampling, so
//! that letters stay sharp, with the tables of the standard's annex K).
//!
//! Invariant: any bytes give a picture or `None`, never a panic.

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::picture::{Picture, upright};

/// Steps of the coefficients, row by row, at a quality of about 85.
const STEPS: [u8; 64] = [
    5, 3, 3, 5, 7, 12, 15, 18, 4, 4, 4, 6, 8, 17, 18, 17, 4, 4, 5, 7, 12, 17, 21, 17, 4, 5, 7, 9, 15, 26, 24,
    19, 5, 7, 11, 17, 20, 33, 31, 23, 7, 11, 17, 19, 24, 31, 34, 28, 15, 19, 23, 26, 31, 36, 36, 30, 22, 28,
    29, 29, 34, 30, 31, 30,
];
/// The order in which coefficients are written.
const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7,
    14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39,
    46, 53, 60, 61, 54, 47, 55, 62, 63,
];
/// How many codes there are of each length, then their values.
const DC_LENGTHS: [u8; 16] = [0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0];
const DC_VALUES: [u8; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
const AC_LENGTHS: [u8; 16] = [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7d];
const AC_VALUES: [u8; 162] = [
    0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22,
    0x71, 0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0, 0x24, 0x33,
    0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x34,
    0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55,
    0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76,
    0x77, 0x78, 0x79, 0x7a, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96,
    0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5,
    0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4,
    0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf1,
    0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa,
];
/// The sides of a block.
const SIDE: usize = 8;
/// Runs of this many zeros have a code of their own.
const LONG_RUN: u8 = 16;

fn decoder(bytes: &[u8]) -> Option<JpegDecoder<ZCursor<&[u8]>>> {
    let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().ok()?;
    Some(decoder)
}

/// Width and height, as they are stored.
pub(super) fn size(bytes: &[u8]) -> Option<(usize, usize)> {
    bytes.starts_with(&[0xff, 0xd8, 0xff]).then_some(())?;
    let info = decoder(bytes)?.info()?;
    Some((usize::from(info.width), usize::from(info.height)))
}

/// The picture as a person sees it.
pub(super) fn decode(bytes: &[u8]) -> Option<Picture> {
    let mut decoder = decoder(bytes)?;
    let info = decoder.info()?;
    let orientation = decoder.exif().and_then(|exif| orientation(exif)).unwrap_or(1);
    let pixels = decoder.decode().ok()?;
    let (width, height) = (usize::from(info.width), usize::from(info.height));
    let channels = pixels.len().checked_div(width * height)?;
    let is_whole = matches!(channels, 1 | 3) && pixels.len() == width * height * channels;
    is_whole.then(|| upright(Picture { width, height, channels, pixels }, orientation))
}

/// The tag 0x0112 of the first directory.
fn orientation(exif: &[u8]) -> Option<u16> {
    let exif = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    let is_little = match exif.get(..4)? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let number = |at: usize, length: usize| -> Option<usize> {
        let bytes = exif.get(at..at.checked_add(length)?)?;
        let join = |sum: usize, byte: &u8| sum << 8 | usize::from(*byte);
        Some(if is_little { bytes.iter().rev().fold(0, join) } else { bytes.iter().fold(0, join) })
    };
    let directory = number(4, 4)?;
    let entries = (0..number(directory, 2)?).map(|entry| directory + 2 + entry * 12);
    for entry in entries.take(256) {
        if number(entry, 2)? == 0x0112 {
            return u16::try_from(number(entry + 8, 2)?).ok();
        }
    }
    None
}

/// Gray or colors. `None`: the picture has other channels or no JPEG can be so large.
pub(super) fn encode(picture: &Picture) -> Option<Vec<u8>> {
    let components = picture.channels;
    if !matches!(components, 1 | 3) {
        return None;
    }
    let (width, height) = (u16::try_from(picture.width).ok()?, u16::try_from(picture.height).ok()?);
    let mut out = vec![0xff, 0xd8];
    let steps = ZIGZAG.map(|at| STEPS[usize::from(at)]);
    segment(&mut out, 0xdb, &[&[0][..], &steps].concat());
    let mut frame = vec![8];
    frame.extend([height.to_be_bytes(), width.to_be_bytes()].concat());
    frame.push(u8::try_from(components).ok()?);
    let mut scan = vec![u8::try_from(components).ok()?];
    for component in 1..=u8::try_from(components).ok()? {
        frame.extend([component, 0x11, 0]);
        scan.extend([component, 0]);
    }
    segment(&mut out, 0xc0, &frame);
    segment(&mut out, 0xc4, &[&[0][..], &DC_LENGTHS, &DC_VALUES].concat());
    segment(&mut out, 0xc4, &[&[0x10][..], &AC_LENGTHS, &AC_VALUES].concat());
    scan.extend([0, 63, 0]);
    segment(&mut out, 0xda, &scan);
    let mut bits = Bits { out, buffer: 0, count: 0 };
    write_blocks(picture, &mut bits);
    bits.finish();
    bits.out.extend([0xff, 0xd9]);
    Some(bits.out)
}

fn segment(out: &mut Vec<u8>, marker: u8, data: &[u8]) {
    let length = u16::try_from(data.len() + 2).unwrap_or(u16::MAX);
    out.extend([0xff, marker]);
    out.extend(length.to_be_bytes());
    out.extend_from_slice(data);
}

/// Bits, with a zero after each byte that could be read as a marker.
struct Bits {
    out: Vec<u8>,
    buffer: u32,
    count: u32,
}

impl Bits {
    /// The lowest `length` bits, at most 16.
    fn write(&mut self, bits: u16, length: u32) {
        self.buffer = self.buffer << length | (u32::from(bits) & ((1 << length) - 1));
        self.count += length;
        while self.count >= 8 {
            self.count -= 8;
            let byte = (self.buffer >> self.count).to_be_bytes()[3];
            self.out.push(byte);
            if byte == 0xff {
                self.out.push(0);
            }
        }
    }

    /// Fills the last byte with ones.
    fn finish(&mut self) {
        if self.count > 0 {
            self.write(0x7f, 8 - self.count);
        }
    }
}

/// The code of each value: its bits and their number.
type Codes = [(u16, u32); 256];

fn codes(lengths: &[u8; 16], values: &[u8]) -> Codes {
    let mut codes = [(0, 0); 256];
    let (mut code, mut values) = (0_u16, values.iter());
    for (length, count) in (1..).zip(lengths) {
        for value in values.by_ref().take(usize::from(*count)) {
            codes[usize::from(*value)] = (code, length);
            code = code.wrapping_add(1);
        }
        code <<= 1;
    }
    codes
}

fn write_blocks(picture: &Picture, bits: &mut Bits) {
    let (dc, ac) = (codes(&DC_LENGTHS, &DC_VALUES), codes(&AC_LENGTHS, &AC_VALUES));
    let cosines = cosines();
    let mut last = [0_i32; 3];
    for top in (0..picture.height).step_by(SIDE) {
        for left in (0..picture.width).step_by(SIDE) {
            for (component, last) in last.iter_mut().enumerate().take(picture.channels) {
                let block = transform(&block_of(picture, left, top, component), &cosines);
                let first = block[0] - *last;
                *last = block[0];
                write_block(bits, first, &block, &dc, &ac);
            }
        }
    }
}

/// One component of a block, around zero. At the edges the last pixel is repeated.
fn block_of(picture: &Picture, left: usize, top: usize, component: usize) -> [f32; 64] {
    std::array::from_fn(|at| {
        let x = (left + at % SIDE).min(picture.width - 1);
        let y = (top + at / SIDE).min(picture.height - 1);
        let start = (y * picture.width + x) * picture.channels;
        let channel = |offset: usize| f32::from(picture.pixels[start + offset]);
        if picture.channels == 1 {
            return channel(0) - 128.0;
        }
        let (red, green, blue) = (channel(0), channel(1), channel(2));
        match component {
            0 => 0.299 * red + 0.587 * green + 0.114 * blue - 128.0,
            1 => -0.168_736 * red - 0.331_264 * green + 0.5 * blue,
            _ => 0.5 * red - 0.418_688 * green - 0.081_312 * blue,
        }
    })
}

/// The waves of the cosine transform, with their factors.
fn cosines() -> [[f32; SIDE]; SIDE] {
    std::array::from_fn(|wave| {
        std::array::from_fn(|at| {
            let factor = if wave == 0 { 0.125_f32.sqrt() } else { 0.5 };
            let angle = (2 * at + 1) as f32 * wave as f32 * std::f32::consts::PI / 16.0;
            factor * angle.cos()
        })
    })
}

/// The coefficients in the order in which they are written, in whole steps.
fn transform(block: &[f32; 64], cosines: &[[f32; SIDE]; SIDE]) -> [i32; 64] {
    let mut rows = [0.0_f32; 64];
    for y in 0..SIDE {
        for (wave, cosines) in cosines.iter().enumerate() {
            rows[y * SIDE + wave] = (0..SIDE).map(|x| block[y * SIDE + x] * cosines[x]).sum();
        }
    }
    ZIGZAG.map(|at| {
        let (column, wave) = (usize::from(at) % SIDE, usize::from(at) / SIDE);
        let sum: f32 = (0..SIDE).map(|y| rows[y * SIDE + column] * cosines[wave][y]).sum();
        (sum / f32::from(STEPS[usize::from(at)])).round() as i32
    })
}

fn write_block(bits: &mut Bits, first: i32, block: &[i32; 64], dc: &Codes, ac: &Codes) {
    write_value(bits, 0, first, dc);
    let mut zeros = 0;
    for value in &block[1..] {
        if *value == 0 {
            zeros += 1;
            continue;
        }
        while zeros >= LONG_RUN {
            let (code, length) = ac[0xf0];
            bits.write(code, length);
            zeros -= LONG_RUN;
        }
        write_value(bits, zeros, *value, ac);
        zeros = 0;
    }
    if zeros > 0 {
        let (code, length) = ac[0];
        bits.write(code, length);
    }
}

/// A value after a run of zeros: the code of both, then the bits of the value. Negative ones are written less one.
fn write_value(bits: &mut Bits, zeros: u8, value: i32, codes: &Codes) {
    let value = value.clamp(-1023, 1023);
    let length = i32::BITS - value.unsigned_abs().leading_zeros();
    let (code, code_length) = codes[usize::from(zeros << 4) | length as usize];
    bits.write(code, code_length);
    let shown = if value < 0 { value - 1 } else { value };
    bits.write((shown & 0xffff) as u16, length);
}

/// The picture with the mark of a camera.
#[cfg(test)]
pub(super) fn with_orientation(jpeg: &[u8], orientation: u8) -> Vec<u8> {
    let mut exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
    let mut out = jpeg[..2].to_vec();
    segment(&mut out, 0xe1, &exif);
    out.extend_from_slice(&jpeg[2..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_another_decoder_reads() {
        for (width, height, channels) in [(8, 8, 1), (64, 48, 3), (33, 17, 3), (1, 1, 3)] {
            let value = |at: usize| {
                let (pixel, channel) = (at / channels, at % channels);
                let (x, y) = (pixel % width, pixel / width);
                u8::try_from((x * 3 + y * 5 + channel * 40) % 256 / 2 + 40).unwrap()
            };
            let pixels: Vec<u8> = (0..width * height * channels).map(value).collect();
            let picture = Picture { width, height, channels, pixels };
            let read = decode(&encode(&picture).unwrap()).unwrap();
            assert_eq!((read.width, read.height), (width, height));
            let factor = read.channels / channels;
            let error: u64 = picture
                .pixels
                .iter()
                .enumerate()
                .map(|(at, value)| u64::from(value.abs_diff(read.pixels[at * factor])))
                .sum();
            let mean = error as f64 / picture.pixels.len() as f64;
            assert!(mean < 4.0, "{width}x{height} {channels}: {mean}");
        }
    }

    #[test]
    fn the_orientation_is_found_in_either_byte_order() {
        let big = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0";
        let little = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x08\0\0\0";
        assert_eq!((orientation(big), orientation(little)), (Some(6), Some(8)));
        for length in 0..big.len() - 2 {
            assert_eq!(orientation(&big[..length]), None, "{length}");
        }
        assert_eq!(orientation(b"nothing"), None);
    }
}
