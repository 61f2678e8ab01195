//! Documents that are no plain text, as text for a model: notebooks and PDF files. Pictures, in a size that models take.
//!
//! Must not know tools and settings. Invariants: any bytes give a text or a sentence, never a panic; work and memory are
//! bounded by constants here, whatever a file says about itself.

mod fitting;
mod jpeg;
mod notebook;
mod pdf;
mod pdf_font;
mod pdf_syntax;
mod picture;
mod png;
mod webp;

use std::path::Path;

pub(crate) use fitting::fitted as fitted_image;

/// The readable text of a document; `None` where the file is another kind.
pub(crate) fn text_of(path: &Path, bytes: &[u8]) -> Option<Result<String, String>> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if bytes.starts_with(b"%PDF-") {
        return Some(pdf::text(bytes));
    }
    ending.eq_ignore_ascii_case("ipynb").then(|| notebook::text(bytes))
}

/// Whether a file may be such a document, by its name.
pub(crate) fn may_be_document(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ["ipynb", "pdf"].iter().any(|known| ending.eq_ignore_ascii_case(known))
}
