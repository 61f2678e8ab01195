//! Pasted images: the path of an image file, as terminals paste a dropped file, or a `data:` address; and the image in the
//! clipboard, which a terminal cannot hand over itself.
//!
//! Invariant: a paste that is no image stays text.

use std::path::PathBuf;

use base64::Engine;
use domain::Failure;
use domain::command::Context;

use super::screen::{Effect, Screen};

const TYPES: [(&str, &str); 5] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
];

impl Screen {
    /// Takes a paste that is an image. Returns false for other text.
    pub(super) fn paste_image(&mut self, text: &str) -> bool {
        let text = text.trim();
        if text.is_empty() || text.contains('\n') {
            return false;
        }
        if let Some(context) = data_address(text) {
            self.attach_image(context);
            return true;
        }
        let Some(path) = image_path(text) else { return false };
        self.push_effect(Effect::Image { path, pasted: text.to_owned() });
        true
    }

    pub(super) fn add_image(&mut self, pasted: &str, image: Result<Context, Failure>) {
        match image {
            Ok(context) => self.attach_image(context),
            // Perhaps it is only the name of a file.
            Err(_) => self.input.insert_paste(pasted),
        }
    }

    pub(super) fn add_clipboard_image(&mut self, image: Result<Context, Failure>) {
        match image {
            Ok(context) => self.attach_image(context),
            Err(failure) => self.flash(failure.to_string()),
        }
    }

    /// A mark in the input stands for the image.
    fn attach_image(&mut self, context: Context) {
        self.images += 1;
        let mark = format!("@image-{}", self.images);
        self.input.insert(&format!("{mark} "));
        self.attach_context(mark, context);
        self.asks.focused = false;
    }
}

/// `data:image/png;base64,…`.
fn data_address(text: &str) -> Option<Context> {
    let (mime, data) = text.strip_prefix("data:")?.split_once(";base64,")?;
    let mime = TYPES.iter().find(|(_, known)| *known == mime)?.1;
    base64::engine::general_purpose::STANDARD.decode(data).ok()?;
    Some(Context::Image { mime: mime.to_owned(), data: data.into() })
}

/// The path of an image file, in quotes, with escaped spaces or as a `file:` address.
fn image_path(text: &str) -> Option<PathBuf> {
    let inner = ['"', '\''].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
    let path = match (inner, platform::file_uri::to_path_leniently(text)) {
        (Some(inner), _) => inner.to_owned(),
        (None, Some(path)) => path.to_str()?.to_owned(),
        (None, None) => text.replace("\\ ", " "),
    };
    let extension = path.rsplit_once('.')?.1.to_lowercase();
    let is_image = TYPES.iter().any(|(known, _)| *known == extension);
    (is_image && path.contains(['/', std::path::MAIN_SEPARATOR])).then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pastes_of_images_are_known() {
        for (text, expected) in [
            ("/tmp/a.png", Some("/tmp/a.png")),
            ("'/tmp/my shot.PNG'", Some("/tmp/my shot.PNG")),
            ("/tmp/my\\ shot.jpg", Some("/tmp/my shot.jpg")),
            ("file:///tmp/my%20shot.webp", Some("/tmp/my shot.webp")),
            ("see a.png", None),
            ("/tmp/notes.txt", None),
        ] {
            assert_eq!(image_path(text), expected.map(PathBuf::from), "{text}");
        }
        assert!(data_address("data:image/png;base64,aGVsbG8=").is_some());
        assert!(
            data_address("data:image/png;base64,???").is_none()
                && data_address("data:text/html;base64,aGVsbG8=").is_none()
        );
    }
}
