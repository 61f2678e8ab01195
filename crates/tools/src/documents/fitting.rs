//! Makes large pictures smaller, to what models take: PNG, JPEG and WebP. Other pictures stay as they are.
//!
//! Invariants: any bytes give a picture or `None`, never a panic; no more memory than a picture of [`MAX_PIXELS`] takes;
//! the sides keep their proportion; a photograph stays upright.

use super::picture::{Picture, opaque, scale};
use super::{jpeg, png, webp};

/// Models scale down what is larger, and some refuse it.
const LONGEST_SIDE: usize = 2_000;
/// Larger pictures are left alone.
const MAX_PIXELS: usize = 16 << 20;
/// How often a picture is made smaller whose bytes are too many.
const ATTEMPTS: usize = 4;

/// A picture as it is sent.
#[derive(Debug, PartialEq)]
pub(crate) struct Fitted {
    pub(crate) mime: &'static str,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum Format {
    Png,
    Jpeg,
    WebP,
}

/// The same picture with sides and bytes that models take; `None` where it has them, or is of a kind that is not read here.
pub(crate) fn fitted(bytes: &[u8], max_bytes: u64) -> Option<Fitted> {
    let (format, (width, height)) = read_size(bytes)?;
    let is_small = width.max(height) <= LONGEST_SIDE && bytes.len() as u64 <= max_bytes;
    if is_small || width == 0 || height == 0 || width.checked_mul(height)? > MAX_PIXELS {
        return None;
    }
    let mut picture = match format {
        Format::Png => png::decode(bytes),
        Format::Jpeg => jpeg::decode(bytes),
        Format::WebP => webp::decode(bytes),
    }?;
    let mut side = LONGEST_SIDE.min(picture.width.max(picture.height));
    let mut keeps_png = format == Format::Png;
    for _ in 0..ATTEMPTS {
        picture = with_side(picture, side);
        let fitted = match keeps_png {
            true => Fitted { mime: "image/png", bytes: png::encode(&picture)? },
            false => {
                picture = opaque(picture);
                Fitted { mime: "image/jpeg", bytes: jpeg::encode(&picture)? }
            }
        };
        if fitted.bytes.len() as u64 <= max_bytes {
            return Some(fitted);
        }
        // A photograph that somebody has stored as PNG.
        match keeps_png {
            true => keeps_png = false,
            false => side = side * 2 / 3,
        }
    }
    None
}

fn read_size(bytes: &[u8]) -> Option<(Format, (usize, usize))> {
    png::size(bytes)
        .map(|size| (Format::Png, size))
        .or_else(|| Some((Format::Jpeg, jpeg::size(bytes)?)))
        .or_else(|| Some((Format::WebP, webp::size(bytes)?)))
}

fn with_side(picture: Picture, longest: usize) -> Picture {
    let now = picture.width.max(picture.height);
    if now <= longest {
        return picture;
    }
    let side = |length: usize| (length * longest / now).max(1);
    scale(&picture, side(picture.width), side(picture.height))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: u64 = 50 << 20;

    fn picture(width: usize, height: usize, channels: usize) -> Picture {
        let value = |at: usize| u8::try_from(at / channels % width * 255 / width).unwrap();
        Picture { width, height, channels, pixels: (0..width * height * channels).map(value).collect() }
    }

    #[test]
    fn a_large_picture_is_scaled_and_a_small_one_is_not() {
        for channels in [1, 2, 3, 4] {
            let large = png::encode(&picture(4_000, 100, channels)).unwrap();
            let small = fitted(&large, MANY).unwrap();
            assert_eq!((png::size(&small.bytes), small.mime), (Some((2_000, 50)), "image/png"));
            let read = png::decode(&small.bytes).unwrap();
            // Brighter from left to right, as before.
            let at = |x: usize| read.pixels[(25 * 2_000 + x) * channels];
            assert!(at(10) < at(1_000) && at(1_000) < at(1_990), "{} {} {}", at(10), at(1_000), at(1_990));
            assert_eq!(fitted(&png::encode(&picture(2_000, 30, channels)).unwrap(), MANY), None);
        }
    }

    #[test]
    fn photographs_are_scaled_and_stay_upright() {
        for channels in [1, 3] {
            let large = jpeg::encode(&picture(2_500, 10, channels)).unwrap();
            let small = fitted(&large, MANY).unwrap();
            assert_eq!((jpeg::size(&small.bytes), small.mime), (Some((2_000, 8)), "image/jpeg"));
            assert_eq!(fitted(&jpeg::encode(&picture(2_000, 8, channels)).unwrap(), MANY), None);
        }
        // The camera was held upright: the sides change their places.
        let turned = jpeg::with_orientation(&jpeg::encode(&picture(2_500, 10, 3)).unwrap(), 6);
        assert_eq!(jpeg::size(&fitted(&turned, MANY).unwrap().bytes), Some((8, 2_000)));
    }

    #[test]
    fn a_webp_picture_becomes_a_jpeg_that_models_take() {
        let large = webp::encode(&picture(3_000, 15, 4));
        assert_eq!(webp::size(&large), Some((3_000, 15)));
        let small = fitted(&large, MANY).unwrap();
        assert_eq!((jpeg::size(&small.bytes), small.mime), (Some((2_000, 10)), "image/jpeg"));
        assert_eq!(fitted(&webp::encode(&picture(200, 30, 4)), MANY), None);
    }

    #[test]
    fn too_many_bytes_are_made_fewer() {
        // Noise does not become smaller as PNG.
        let mut state = 1_u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let pixels = (0..80 * 80 * 3).map(|_| noise()).collect();
        let png = png::encode(&Picture { width: 80, height: 80, channels: 3, pixels }).unwrap();
        let max = png.len() as u64 / 8;
        let small = fitted(&png, max).unwrap();
        assert_eq!(small.mime, "image/jpeg");
        assert!(small.bytes.len() as u64 <= max);
        assert_eq!(fitted(&png, 10), None);
    }

    #[test]
    fn broken_pictures_are_left_alone() {
        let whole = png::encode(&picture(2_100, 10, 3)).unwrap();
        for length in 0..whole.len() - 12 {
            assert_eq!(fitted(&whole[..length], MANY), None, "{length}");
        }
        let mut interlaced = whole.clone();
        interlaced[28] = 1;
        assert_eq!(fitted(&interlaced, MANY), None);
        let mut huge = whole;
        huge[16..24].copy_from_slice(&[0xff; 8]);
        assert_eq!(fitted(&huge, MANY), None);
        let photograph = jpeg::encode(&picture(2_100, 8, 3)).unwrap();
        let web = webp::encode(&picture(2_100, 4, 3));
        for length in (0..photograph.len()).step_by(397) {
            // The decoder gives what it has of a picture that was cut; it never panics.
            let _ = fitted(&photograph[..length], MANY);
        }
        for length in (0..web.len()).step_by(29) {
            let _ = fitted(&web[..length], MANY);
        }
    }
}
