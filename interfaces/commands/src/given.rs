//! The specification that `dragoman studio` is started with.

use std::path::Path;

use apiui::read::{LIMIT_BYTES, read_bytes};
use domain::Failure;
use platform::project_files;
use studio::GivenSpecification;

use crate::spec;

/// The specification of the command line, with the files beside it that it refers to.
pub fn given_specification(place: &str) -> Result<GivenSpecification, Failure> {
    if spec::is_address(place) {
        return Ok(GivenSpecification::Address(place.to_owned()));
    }
    let text = String::from_utf8(spec::bytes_of(place)?)
        .map_err(|_| Failure::user(format!("{place} is not UTF-8 text.")))?;
    let path = std::path::absolute(Path::new(place)).unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    let mut documents = std::collections::BTreeMap::new();
    let mut load = |location: &str| {
        let read = project_files::read_beneath(&folder, &folder.join(location), LIMIT_BYTES as u64);
        let bytes = read.map_err(|error| format!("{location} cannot be read: {error}."))?;
        documents.insert(location.to_owned(), String::from_utf8_lossy(&bytes).into_owned());
        Ok(bytes)
    };
    // What is wrong with it is told on the page.
    let _ = read_bytes(text.as_bytes(), Some(&name), Some(&mut load));
    Ok(GivenSpecification::File { name, text, documents })
}
