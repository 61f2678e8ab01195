//! Which repositories a task may name, and how their names are read.
//!
//! Invariants: only folders, https and ssh; nothing that git could take for an option or another transport; no password.

use std::path::{Path, PathBuf};

use domain::Failure;

const LONGEST: usize = 2000;

/// Where a repository is.
#[derive(Debug, PartialEq)]
pub(crate) enum Place {
    Folder(PathBuf),
    Address(String),
}

/// The repository of a new task: a folder by its whole path, or an address.
pub fn submitted(text: &str) -> Result<String, Failure> {
    if is_address(text) {
        return place(text).map(|_| text.trim_end_matches('/').to_owned()).map_err(Failure::user);
    }
    let folder = Path::new(text).canonicalize();
    let folder = folder.map_err(|error| Failure::user(format!("{text} is no folder: {error}.")))?;
    if !folder.join(".git").exists() {
        return Err(Failure::user(format!("{} is not the top of a git repository.", folder.display())));
    }
    folder
        .into_os_string()
        .into_string()
        .map_err(|_| Failure::user("The path of the repository is not text."))
}

fn is_address(text: &str) -> bool {
    let is_short = text.split_once(':').is_some_and(|(host, _)| host.contains('@') && !host.contains('/'));
    text.contains("://") || text.contains("::") || is_short
}

/// The repository of a task, which anybody with the database may have written.
pub(crate) fn place(text: &str) -> Result<Place, String> {
    let refused = || {
        format!(
            "The repository {text} is neither a folder nor an https or ssh address of git without a password."
        )
    };
    let is_plain = |char: char| !char.is_control() && !char.is_whitespace();
    if text.len() > LONGEST || text.starts_with('-') || text.contains("..") {
        return Err(refused());
    }
    if text.starts_with('/') {
        return if text.contains(char::is_control) { Err(refused()) } else { Ok(Place::Folder(text.into())) };
    }
    let (user, host) =
        if let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("ssh://")) {
            let authority = rest.split('/').next().unwrap_or_default();
            authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host))
        } else {
            let (authority, path) = text.split_once(':').ok_or_else(refused)?;
            if path.is_empty() || path.starts_with(':') || path.starts_with('-') {
                return Err(refused());
            }
            let (user, host) = authority.split_once('@').ok_or_else(refused)?;
            (Some(user), host)
        };
    let is_name = |name: &str| {
        let is_allowed = |char: char| char.is_ascii_alphanumeric() || "-._:[]".contains(char);
        !name.is_empty() && !name.starts_with('-') && name.chars().all(is_allowed)
    };
    let is_user = |user: &str| is_name(user) && !user.contains(':');
    if text.chars().all(is_plain) && is_name(host) && user.is_none_or(is_user) {
        return Ok(Place::Address(text.to_owned()));
    }
    Err(refused())
}

pub fn check_reference(text: &str) -> Result<(), Failure> {
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || "/-_.+#@".contains(char);
    let is_plain = !text.is_empty() && text.len() <= 250 && text.chars().all(is_allowed);
    if is_plain && !text.starts_with(['-', '/', '.']) && !text.contains("..") && !text.contains("@{") {
        return Ok(());
    }
    Err(Failure::user(format!(
        "`{}` is not the name of a branch, a tag or a commit.",
        domain::visible_line(text)
    )))
}

/// How the repositories of a worker begin, each with an end that no other name goes on after.
pub(crate) fn beginnings(settings: &[String]) -> Vec<String> {
    let whole = |text: &String| {
        let folder = Path::new(text).canonicalize().ok().filter(|_| text.starts_with('/'));
        let text =
            folder.and_then(|folder| folder.to_str().map(str::to_owned)).unwrap_or_else(|| text.clone());
        format!("{}/", text.trim_end_matches('/'))
    };
    settings.iter().map(whole).collect()
}

/// Whether one of the settings names the repository.
pub(crate) fn is_named(settings: &[String], repository: &str) -> bool {
    let repository = format!("{repository}/");
    beginnings(settings).iter().any(|beginning| repository.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_https_and_ssh_are_repositories() {
        for good in [
            "https://git.example.com/acme/shop.git",
            "https://git.example.com:8443/shop",
            "ssh://git@git.example.com/shop.git",
            "git@git.example.com:acme/shop.git",
        ] {
            assert_eq!(place(good), Ok(Place::Address(good.to_owned())), "{good}");
        }
        assert_eq!(place("/srv/shop"), Ok(Place::Folder("/srv/shop".into())));
        for bad in [
            "ext::sh -c touch% /tmp/x",
            "file:///etc",
            "git://example.com/x",
            "http://example.com/x",
            "https://me:secret@example.com/x",
            "ssh://-oProxyCommand=x/y",
            "--upload-pack=x",
            "git@-oProxyCommand=x:y",
            "git@host::y",
            "https://example.com/a/../b",
            "/srv/../etc",
            "relative",
            "https:///x",
            "https://exa mple.com/x",
            "",
        ] {
            assert!(place(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_setting_names_what_is_below_it() {
        let settings =
            ["/srv/code/".to_owned(), "https://h/acme".to_owned(), "git@h:acme/shop.git".to_owned()];
        for (repository, expected) in [
            ("/srv/code", true),
            ("/srv/code/a", true),
            ("/srv/code2", false),
            ("https://h/acme/shop", true),
            ("https://h/acme-evil/shop", false),
            ("git@h:acme/shop.git", true),
            ("git@h:acme/shop", false),
        ] {
            assert_eq!(is_named(&settings, repository), expected, "{repository}");
        }
    }

    #[test]
    fn references_are_plain_names() {
        for good in ["HEAD", "main", "feature/x-1", "v1.0", "0123456789abcdef"] {
            assert!(check_reference(good).is_ok(), "{good}");
        }
        for bad in ["", "-x", "a..b", "a b", "HEAD@{1}", "a:b", "a^b", "/x", ".x", "a\nb"] {
            assert!(check_reference(bad).is_err(), "{bad}");
        }
    }
}
