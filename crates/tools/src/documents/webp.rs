//! WebP pictures, without animations.

use std::io::Cursor;

use image_webp::WebPDecoder;

use super::picture::Picture;

/// The decoder takes no more memory than this beside the picture itself.
const MEMORY: usize = 256 << 20;

/// Width and height.
pub(super) fn size(bytes: &[u8]) -> Option<(usize, usize)> {
    let decoder = WebPDecoder::new(Cursor::new(bytes)).ok()?;
    let (width, height) = decoder.dimensions();
    Some((usize::try_from(width).ok()?, usize::try_from(height).ok()?)).filter(|_| !decoder.is_animated())
}

pub(super) fn decode(bytes: &[u8]) -> Option<Picture> {
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).ok()?;
    decoder.set_memory_limit(MEMORY);
    let (width, height) = size(bytes)?;
    let channels = if decoder.has_alpha() { 4 } else { 3 };
    let length = decoder.output_buffer_size().filter(|length| *length == width * height * channels)?;
    let mut pixels = vec![0; length];
    decoder.read_image(&mut pixels).ok()?;
    Some(Picture { width, height, channels, pixels })
}

#[cfg(test)]
pub(super) fn encode(picture: &Picture) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (width, height) = (picture.width.try_into().unwrap(), picture.height.try_into().unwrap());
    let color = match picture.channels {
        4 => image_webp::ColorType::Rgba8,
        _ => image_webp::ColorType::Rgb8,
    };
    image_webp::WebPEncoder::new(&mut bytes).encode(&picture.pixels, width, height, color).unwrap();
    bytes
}
