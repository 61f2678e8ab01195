//! `xtask site FOLDER`: the documentation as a static site. Pages keep their places, so that relative links stay true.
//!
//! Must not know the contents of pages. Invariants: a page needs no script and no file of another server; a heading has the
//! address that GitHub gives it.

#![allow(clippy::wildcard_enum_match_arm, reason = "most events of a page stay as they are")]

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// The first page.
const START: &str = "docs/README.md";
/// Files that pages show or link to.
const ASSETS: [&str; 4] = ["svg", "png", "json", "txt"];
const STYLE: &str = include_str!("site.css");

/// Writes the site and returns the number of its pages.
pub fn write(root: &Path, folder: &Path) -> Result<usize, String> {
    let mut pages = BTreeMap::new();
    let mut assets = Vec::new();
    for path in files(root)? {
        let inner = path.strip_prefix(root).unwrap_or(&path).to_owned();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("md") => {
                let text = std::fs::read_to_string(&path).map_err(|error| failure(&path, &error))?;
                pages.insert(inner, text);
            }
            Some(extension) if ASSETS.contains(&extension) => assets.push(inner),
            _ => {}
        }
    }
    for (inner, text) in &pages {
        put(folder, &inner.with_extension("html"), page(inner, text, &pages).as_bytes())?;
    }
    for inner in assets {
        let path = root.join(&inner);
        put(folder, &inner, &std::fs::read(&path).map_err(|error| failure(&path, &error))?)?;
    }
    let start = Path::new(START).with_extension("html");
    let forward = format!(
        "<!doctype html><meta charset=\"utf-8\"><title>Dragoman</title><meta http-equiv=\"refresh\" content=\"0; url={0}\">\
         <a href=\"{0}\">Documentation</a>\n",
        start.display()
    );
    put(folder, Path::new("index.html"), forward.as_bytes())?;
    Ok(pages.len())
}

/// The Markdown files of the root, the map of the second product, and everything beneath `docs`.
fn files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found: Vec<PathBuf> =
        list(root)?.into_iter().filter(|path| path.extension().is_some_and(|it| it == "md")).collect();
    found.push(root.join("interfaces/README.md"));
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for path in list(&folder)? {
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    Ok(found)
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| failure(folder, &error))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}

fn put(folder: &Path, inner: &Path, content: &[u8]) -> Result<(), String> {
    let path = folder.join(inner);
    let parent = path.parent().unwrap_or(folder);
    std::fs::create_dir_all(parent).map_err(|error| failure(parent, &error))?;
    std::fs::write(&path, content).map_err(|error| failure(&path, &error))
}

fn failure(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn page(inner: &Path, text: &str, pages: &BTreeMap<PathBuf, String>) -> String {
    let up = "../".repeat(inner.components().count() - 1);
    let mut body = String::new();
    html::push_html(&mut body, events(text).into_iter());
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} · Dragoman</title>\n<style>\n{STYLE}</style></head>\n\
         <body><nav>\n{}</nav>\n<main>\n{body}</main></body></html>\n",
        escape(&title(text)),
        navigation(inner, &up, pages)
    )
}

/// All pages by folder; decisions and peers stand below the guides.
fn navigation(current: &Path, up: &str, pages: &BTreeMap<PathBuf, String>) -> String {
    let mut folders: BTreeMap<&Path, Vec<(&PathBuf, String)>> = BTreeMap::new();
    for (inner, text) in pages {
        folders.entry(inner.parent().unwrap_or(Path::new(""))).or_default().push((inner, title(text)));
    }
    let mut groups: Vec<(&Path, Vec<(&PathBuf, String)>)> = folders.into_iter().collect();
    groups.sort_by_key(|(folder, _)| *folder != Path::new("docs"));
    let mut text = String::new();
    for (folder, mut entries) in groups {
        entries.sort_by_key(|(inner, title)| (inner.as_path() != Path::new(START), title.to_lowercase()));
        let name = if folder.as_os_str().is_empty() {
            "repository".to_owned()
        } else {
            folder.display().to_string()
        };
        text.push_str(&format!("<b>{}</b>\n<ul>\n", escape(&name)));
        for (inner, title) in entries {
            let mark = if inner == current { " class=\"here\"" } else { "" };
            let address = inner.with_extension("html");
            let line = format!("<li><a{mark} href=\"{up}{}\">{}</a>\n", address.display(), escape(&title));
            text.push_str(&line);
        }
        text.push_str("</ul>\n");
    }
    text
}

/// The first heading.
fn title(text: &str) -> String {
    let heading = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or("Dragoman");
    heading.replace('`', "")
}

/// The page with addresses of headings and links to pages of the site.
fn events(text: &str) -> Vec<Event<'_>> {
    let mut events: Vec<Event<'_>> =
        Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH).collect();
    let mut known: HashMap<String, usize> = HashMap::new();
    for at in 0..events.len() {
        let address = matches!(events[at], Event::Start(Tag::Heading { .. })).then(|| address(&events[at..]));
        match &mut events[at] {
            Event::Start(Tag::Heading { id, .. }) => {
                let address = address.unwrap_or_default();
                let count = known.entry(address.clone()).or_default();
                let unique = if *count == 0 { address } else { format!("{address}-{count}") };
                *count += 1;
                *id = Some(CowStr::from(unique));
            }
            Event::Start(Tag::Link { dest_url, .. }) => *dest_url = CowStr::from(target(dest_url)),
            _ => {}
        }
    }
    events
}

/// The address of the heading that these events begin with.
fn address(events: &[Event<'_>]) -> String {
    let inner = events.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let text: String = inner
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(text.to_lowercase()),
            _ => None,
        })
        .collect();
    let kept = text.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.collect::<String>().trim().replace(' ', "-")
}

/// A link to a page of the repository leads to the page of the site.
fn target(link: &str) -> String {
    if link.contains("://") {
        return link.to_owned();
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let file = file.strip_suffix(".md").map_or(file.to_owned(), |stem| format!("{stem}.html"));
    anchor.map_or(file.clone(), |anchor| format!("{file}#{anchor}"))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Each link of the site leads to a file of it, and to a heading where it names one.
    #[test]
    fn the_site_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let root = crate::tidy::root();
        assert!(write(&root, folder.path()).unwrap() > 20);
        let mut wrong = Vec::new();
        let mut pages = vec![folder.path().to_owned()];
        let mut files = Vec::new();
        while let Some(next) = pages.pop() {
            for path in list(&next).unwrap() {
                if path.is_dir() { pages.push(path) } else { files.push(path) }
            }
        }
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        for path in files.iter().filter(|path| path.extension().is_some_and(|it| it == "html")) {
            let text = read(path);
            for link in text.split("href=\"").skip(1).filter_map(|part| part.split('"').next()) {
                if link.contains("://") || link.starts_with("mailto:") {
                    continue;
                }
                let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
                let named = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
                let ids: HashSet<String> = match anchor.is_empty() {
                    true => HashSet::new(),
                    false => read(&named)
                        .split("id=\"")
                        .skip(1)
                        .filter_map(|it| Some(it.split('"').next()?.to_owned()))
                        .collect(),
                };
                // Links to folders and sources of the repository are true there, not here.
                let in_repository = root.join(named.strip_prefix(folder.path()).unwrap_or(&named)).exists();
                let is_page = link.split('#').next().is_some_and(|it| it.ends_with(".html"));
                if (!named.exists() && (is_page || !in_repository))
                    || (!anchor.is_empty() && !ids.contains(anchor))
                {
                    wrong.push(format!("{}: {link}", path.display()));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(read(&folder.path().join("docs/chat.html")).contains("<h1"));
    }
}
