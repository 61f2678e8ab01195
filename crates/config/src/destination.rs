//! Where the secrets of an entry may go: secrets of the user go to addresses of the user's own settings and of the vendor. A
//! project that the user trusts may name another address; the user's secrets are then withheld, whoever refers to them,
//! unless the user's settings name that host.
//!
//! Invariants: an address that cannot be read without doubt is not allowed; nothing goes to another machine in the clear
//! unless the user's settings say so.

use domain::Level;

use crate::address::{self, Place};
use crate::cursor::Cursor;

/// The hosts of vendors, by the names of their providers. The app compares them with the table of vendors.
pub const VENDOR_HOSTS: &[(&str, &str)] = &[
    ("openai", "api.openai.com"),
    ("anthropic", "api.anthropic.com"),
    ("google", "generativelanguage.googleapis.com"),
    ("bedrock", "bedrock-runtime.us-east-1.amazonaws.com"),
    ("github-copilot", "api.githubcopilot.com"),
    ("openrouter", "openrouter.ai"),
    ("deepseek", "api.deepseek.com"),
    ("mistral", "api.mistral.ai"),
    ("groq", "api.groq.com"),
    ("xai", "api.x.ai"),
    ("moonshot", "api.moonshot.ai"),
    ("z-ai", "api.z.ai"),
    ("qwen", "dashscope-intl.aliyuncs.com"),
    ("cerebras", "api.cerebras.ai"),
    ("cohere", "api.cohere.ai"),
    ("deepinfra", "api.deepinfra.com"),
    ("fireworks", "api.fireworks.ai"),
    ("huggingface", "router.huggingface.co"),
    ("minimax", "api.minimax.io"),
    ("nvidia", "integrate.api.nvidia.com"),
    ("perplexity", "api.perplexity.ai"),
    ("together", "api.together.xyz"),
];

/// The address of one entry, as far as its secrets are concerned.
pub(crate) struct Destination<'a> {
    /// The member that a project set, where its place is not one of the user's.
    foreign: Option<Cursor<'a>>,
    host: String,
}

impl<'a> Destination<'a> {
    /// `addresses`: the members of `entry` that name an address. The first that a project set counts.
    pub(crate) fn of(entry: &Cursor<'a>, addresses: &[Cursor<'a>]) -> Self {
        let named = entry.get("keyHosts");
        let named = if named.project_root().is_some() { Vec::new() } else { named.texts() };
        let foreign = addresses.iter().find_map(|member| {
            member.project_root()?;
            let url = member.lazy_text().and_then(|url| url.get_blocking().ok()).unwrap_or_default();
            let place = address::place(&url);
            let is_allowed =
                place.as_ref().is_some_and(|place| is_allowed(place, entry.name(), &named, member));
            let host = place
                .map_or_else(|| "its address, which cannot be read without doubt".to_owned(), |it| it.host);
            (!is_allowed).then(|| (member.clone(), host))
        });
        match foreign {
            Some((member, host)) => Self { foreign: Some(member), host },
            None => Self { foreign: None, host: String::new() },
        }
    }

    /// For a program that a project chose: it gets no secret of the user.
    pub(crate) fn of_program(parts: &[Cursor<'a>]) -> Self {
        let foreign = parts.iter().find(|part| part.project_root().is_some()).cloned();
        Self { foreign, host: String::new() }
    }

    /// Whether the entry's address is of a project and not allowed: the host.
    pub(crate) fn foreign_host(&self) -> Option<&str> {
        self.foreign.as_ref().map(|_| self.host.as_str())
    }

    /// Whether a secret may go there: one written in a file of the same project may, a reference may not.
    pub(crate) fn takes(&self, secret: &Cursor) -> bool {
        match &self.foreign {
            Some(address) => {
                secret.project_root().is_some_and(|root| address.project_root() == Some(root))
                    && !secret.refers_outside_project()
            }
            None => true,
        }
    }

    /// The address itself holds a secret of the user, and is not one of the user's.
    pub(crate) fn is_secret(&self) -> bool {
        self.foreign.as_ref().is_some_and(Cursor::refers_outside_project)
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
        let Some(address) = &self.foreign else { return };
        let what = match self.host.is_empty() {
            true => "is set by a project. Your own variables of this server are not given to its program."
                .to_owned(),
            false => format!(
                "is set by a project. Your own keys and headers, and variables and files of yours that it refers to, are \
                 not sent there. To allow it, add `\"keyHosts\": [\"{}\"]` to `{entry}` in your own settings.",
                self.host
            ),
        };
        address.report(Level::Warning, &what);
    }
}

/// Whether the user's own settings name this place: in `keyHosts`, or as the address of the same member; or the vendor has it.
fn is_allowed(place: &Place, provider: &str, named: &[String], member: &Cursor) -> bool {
    let own = member.texts_of_the_user();
    let own = own.iter().filter_map(|url| address::place(url));
    let of_vendor = VENDOR_HOSTS.iter().find(|(name, _)| *name == provider).map(|(_, host)| *host);
    named.iter().any(|named| names(named, place))
        || own.into_iter().any(|own| own.host == place.host && (place.is_https || !own.is_https))
        || (of_vendor == Some(place.host.as_str()) && place.is_https)
}

/// `host`, `host:port`, or the same with its scheme. Without a scheme only encrypted connections and this machine are meant.
fn names(named: &str, place: &Place) -> bool {
    match address::place(named) {
        Some(named) => named == *place,
        None => {
            let scheme = if place.is_https { "https" } else { "http" };
            let named = address::place(&format!("{scheme}://{named}"));
            (place.is_https || place.is_loopback()) && named.as_ref() == Some(place)
        }
    }
}
