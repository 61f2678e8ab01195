//! The addresses a module may call: every server of the specification with its variables filled in.
//!
//! Owns which addresses are acceptable. Invariant: each is empty, a path, or an http(s) address without
//! credentials, because the module may call these and no others.

use super::words::{line, shorten_note};
use super::{Operation, ServerChoice, TemplateVariable};
use crate::spec::{Server, Spec};

const MAX_SERVERS: usize = 40;

pub(super) struct Servers {
    all: Vec<ServerChoice>,
}

impl Servers {
    pub(super) fn of(spec: &Spec, assumptions: &mut Vec<String>) -> Self {
        let mut this = Self { all: Vec::new() };
        for server in &spec.servers {
            this.add(server);
        }
        if spec
            .servers
            .iter()
            .flat_map(|server| &server.variables)
            .any(|variable| variable.choices.is_empty())
        {
            assumptions.push("Server variables without listed values have their defaults.".to_owned());
        }
        if this.all.is_empty() {
            let url = spec.metadata.base_url.clone().filter(|url| is_address(url));
            if url.is_none() && !spec.servers.is_empty() {
                assumptions.push(
                    "No server has an address that a page can call, so requests go to the page's own."
                        .to_owned(),
                );
            }
            this.all.push(ServerChoice { url: url.unwrap_or_default(), ..ServerChoice::default() });
        }
        this
    }

    /// The index of an operation's own server.
    pub(super) fn index(&mut self, server: &Server) -> Option<usize> {
        let url = expanded(server).into_iter().next()?;
        if let Some(index) = self.all.iter().position(|choice| choice.url == url) {
            return Some(index);
        }
        (is_address(&url) && self.all.len() < MAX_SERVERS).then(|| {
            self.all.push(choice(server, url));
            self.all.len() - 1
        })
    }

    /// All addresses, the given one first; the operations' indexes move with them.
    pub(super) fn finish(mut self, first: Option<&str>, operations: &mut [Operation]) -> Vec<ServerChoice> {
        if let Some(url) = first.filter(|url| is_address(url)) {
            self.all.insert(0, ServerChoice { url: url.to_owned(), ..ServerChoice::default() });
            // The given address stands for the whole API: no operation keeps another.
            for operation in operations {
                operation.server = None;
            }
        }
        self.all
    }

    fn add(&mut self, server: &Server) {
        let urls = expanded(server);
        // A template without usable defaults stays a choice, so that the page can ask for its variables.
        if !server.variables.is_empty() && !urls.iter().any(|url| is_address(url)) {
            self.all.push(with_variables(choice(server, String::new()), server));
        }
        let mut is_first = true;
        for url in urls {
            let known = self.all.iter().any(|choice| choice.url == url);
            if is_address(&url) && !known && self.all.len() < MAX_SERVERS {
                let one = choice(server, url);
                self.all.push(if is_first { with_variables(one, server) } else { one });
                is_first = false;
            }
        }
    }
}

fn choice(server: &Server, url: String) -> ServerChoice {
    ServerChoice { url, note: shorten_note(server.description.as_deref(), 160), ..ServerChoice::default() }
}

fn with_variables(mut choice: ServerChoice, server: &Server) -> ServerChoice {
    let variable = |variable: &crate::spec::ServerVariable| TemplateVariable {
        name: line(&variable.name, 80),
        initial: line(&variable.default, 200),
        note: shorten_note(variable.description.as_deref(), 120),
    };
    if !server.variables.is_empty() {
        choice.template = line(&server.url, 500);
        choice.variables = server.variables.iter().take(20).map(variable).collect();
    }
    choice
}

/// Empty, a path, or an http(s) address, without anything that would move the host.
pub fn is_address(text: &str) -> bool {
    if text.chars().any(|c| c.is_whitespace() || c.is_control() || matches!(c, '\\' | '@' | '{' | '}')) {
        return false;
    }
    if let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) {
        return rest.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '[');
    }
    text.is_empty() || (text.starts_with('/') && !text.starts_with("//"))
}

/// Every combination of listed values, the defaults first.
fn expanded(server: &Server) -> Vec<String> {
    let mut urls = vec![line(&server.url, 500)];
    for variable in server.variables.iter().take(20) {
        let place = format!("{{{}}}", variable.name);
        let mut values = vec![variable.default.clone()];
        values.extend(variable.choices.iter().filter(|choice| **choice != variable.default).cloned());
        let mut next = Vec::new();
        for value in values.iter().take(MAX_SERVERS) {
            for url in &urls {
                if next.len() < MAX_SERVERS {
                    next.push(url.replace(&place, value));
                }
            }
        }
        urls = next;
    }
    let tidy = |url: String| {
        let trimmed = url.trim_end_matches('/');
        // "/" is the page's own origin; a protocol-relative address is meant to be secure.
        if let Some(rest) = trimmed.strip_prefix("//") {
            format!("https://{rest}")
        } else {
            trimmed.to_owned()
        }
    };
    urls.into_iter().map(tidy).collect()
}
