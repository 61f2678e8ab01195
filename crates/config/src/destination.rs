//! Where the secrets of an entry may go: secrets of the user's own settings go to addresses of the user's own settings. A
//! project that the user trusts may name another address for the same entry; the user's secrets are then withheld, unless
//! the user's settings name that host.

use domain::Level;

use crate::address;
use crate::cursor::Cursor;

/// The address of one entry, as far as its secrets are concerned.
pub(crate) struct Destination<'a> {
    /// The member that a project set.
    foreign: Option<Cursor<'a>>,
    host: String,
}

impl<'a> Destination<'a> {
    /// `addresses`: the members of `entry` that name an address. The first that a project set counts.
    pub(crate) fn of(entry: &Cursor<'a>, addresses: &[Cursor<'a>]) -> Self {
        let allowed = entry.get("keyHosts");
        let allowed = if allowed.project_root().is_some() { Vec::new() } else { allowed.texts() };
        let foreign = addresses.iter().find_map(|member| {
            member.project_root()?;
            let host = member.lazy_text().and_then(|url| url.get_blocking().ok()).unwrap_or_default();
            let host = address::host(&host).to_ascii_lowercase();
            let is_allowed = allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(&host));
            (!is_allowed).then(|| (member.clone(), host))
        });
        match foreign {
            Some((member, host)) => Self { foreign: Some(member), host },
            None => Self { foreign: None, host: String::new() },
        }
    }

    /// Whether the entry's address is of a project and not allowed: the host.
    pub(crate) fn foreign_host(&self) -> Option<&str> {
        self.foreign.as_ref().map(|_| self.host.as_str())
    }

    /// Whether a secret may go there: one of the same project may.
    pub(crate) fn takes(&self, secret: &Cursor) -> bool {
        match &self.foreign {
            Some(address) => secret.project_root().is_some_and(|root| address.project_root() == Some(root)),
            None => true,
        }
    }

    /// Keeps those members of an object that may go there, and says whether some may not.
    pub(crate) fn members<T>(&self, object: &Cursor<'a>, read: Vec<(String, T)>) -> (Vec<(String, T)>, bool) {
        if self.foreign.is_none() {
            return (read, false);
        }
        let before = read.len();
        let kept: Vec<(String, T)> =
            read.into_iter().filter(|(name, _)| self.takes_member(object, name)).collect();
        let is_short = kept.len() < before;
        (kept, is_short)
    }

    fn takes_member(&self, object: &Cursor<'a>, name: &str) -> bool {
        let entries = object.entries();
        entries.iter().find(|entry| entry.name() == name).is_none_or(|entry| self.takes(entry))
    }

    /// Says that secrets of the user were withheld, and how to allow it.
    pub(crate) fn report(&self, entry: &str) {
        if let Some(address) = &self.foreign {
            let what = format!(
                "is set by a project. Your own keys and headers are not sent there. To allow it, add \
                 `\"keyHosts\": [\"{}\"]` to `{entry}` in your own settings.",
                self.host
            );
            address.report(Level::Warning, &what);
        }
    }
}
