//! A picture in memory: smaller, turned, or without its transparent parts. Pure.
//!
//! Invariant: `pixels` has exactly `width * height * channels` bytes.

/// Pixels of 8 bits a channel: gray, gray with alpha, colors, colors with alpha.
#[derive(Clone)]
pub(super) struct Picture {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) channels: usize,
    pub(super) pixels: Vec<u8>,
}

/// Each new pixel is the mean of those in its place.
pub(super) fn scale(picture: &Picture, width: usize, height: usize) -> Picture {
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

/// Without transparent parts: these are white.
pub(super) fn opaque(picture: Picture) -> Picture {
    if picture.channels % 2 == 1 {
        return picture;
    }
    let channels = picture.channels - 1;
    let mut pixels = Vec::with_capacity(picture.width * picture.height * channels);
    for pixel in picture.pixels.chunks_exact(picture.channels) {
        let alpha = u32::from(pixel[channels]);
        pixels.extend(pixel[..channels].iter().map(|value| {
            let mixed = (u32::from(*value) * alpha + 255 * (255 - alpha)) / 255;
            u8::try_from(mixed).unwrap_or(u8::MAX)
        }));
    }
    Picture { channels, pixels, ..picture }
}

/// As a person sees it whose camera has written this orientation (1 to 8, as EXIF has it).
pub(super) fn upright(picture: Picture, orientation: u16) -> Picture {
    let (width, height) = (picture.width, picture.height);
    let swaps = (5..=8).contains(&orientation);
    if !(2..=8).contains(&orientation) {
        return picture;
    }
    let (new_width, new_height) = if swaps { (height, width) } else { (width, height) };
    let mut pixels = Vec::with_capacity(picture.pixels.len());
    for y in 0..new_height {
        for x in 0..new_width {
            // The place of the new pixel in the old picture.
            let (column, row) = match orientation {
                2 => (width - 1 - x, y),
                3 => (width - 1 - x, height - 1 - y),
                4 => (x, height - 1 - y),
                5 => (y, x),
                6 => (y, height - 1 - x),
                7 => (width - 1 - y, height - 1 - x),
                _ => (width - 1 - y, x),
            };
            let at = (row * width + column) * picture.channels;
            pixels.extend_from_slice(&picture.pixels[at..at + picture.channels]);
        }
    }
    Picture { width: new_width, height: new_height, channels: picture.channels, pixels }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_turned_as_its_camera_says() {
        // a b c
        // d e f
        let picture = Picture { width: 3, height: 2, channels: 1, pixels: b"abcdef".to_vec() };
        for (orientation, width, expected) in [
            (1, 3, "abcdef"),
            (2, 3, "cbafed"),
            (3, 3, "fedcba"),
            (4, 3, "defabc"),
            (5, 2, "adbecf"),
            (6, 2, "daebfc"),
            (7, 2, "fcebda"),
            (8, 2, "cfbead"),
            (9, 3, "abcdef"),
        ] {
            let turned = upright(picture.clone(), orientation);
            let text = String::from_utf8(turned.pixels).unwrap();
            assert_eq!((turned.width, text.as_str()), (width, expected), "{orientation}");
        }
    }

    #[test]
    fn transparent_parts_become_white() {
        let picture = Picture { width: 2, height: 1, channels: 4, pixels: vec![9, 8, 7, 255, 9, 8, 7, 0] };
        let opaque = opaque(picture);
        assert_eq!((opaque.channels, opaque.pixels), (3, vec![9, 8, 7, 255, 255, 255]));
    }
}
