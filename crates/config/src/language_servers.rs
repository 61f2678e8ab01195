//! `languageServers`: programs for front-ends without an editor that has them.
//!
//! Invariant: an entry that cannot be used is reported and left out.

use domain::Level;

use crate::cursor::Cursor;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanguageServer {
    pub name: String,
    pub command: Option<String>,
    pub args: Option<Vec<String>>,
    /// Without the dot.
    pub extensions: Vec<String>,
    pub disabled: bool,
}

pub(crate) fn read(cursor: &Cursor) -> Vec<LanguageServer> {
    cursor.entries().iter().filter_map(read_server).collect()
}

fn read_server(entry: &Cursor) -> Option<LanguageServer> {
    let args = entry.get("args");
    let server = LanguageServer {
        name: entry.name().to_owned(),
        command: entry.get("command").text().map(|command| expand_home(entry, &command)),
        args: args.value().is_some().then(|| args.texts()),
        extensions: entry.get("extensions").texts().iter().map(|ending| without_dot(ending)).collect(),
        disabled: entry.get("disabled").flag().unwrap_or_default(),
    };
    if !server.extensions.is_empty() && server.command.is_none() && !server.disabled {
        entry.report(Level::Error, "must have a command. The language server is left out.");
        return None;
    }
    Some(server)
}

fn expand_home(entry: &Cursor, command: &str) -> String {
    entry.scope().environment.expand_home(command).display().to_string()
}

fn without_dot(ending: &str) -> String {
    ending.trim_start_matches('.').to_owned()
}
