//! `dragoman mcp`: servers in the configuration, their logins, and a look at each.
//!
//! Invariant: commands that change something refuse to run inside a tool call: the model must not give itself servers.

mod arguments;
mod context;
pub(crate) mod status;

use std::process::ExitCode;
use std::sync::Arc;

use config::{Environment, Inputs, McpLoginFile, McpLoginPlace, SavedFile};
use domain::{BoxFuture, Failure, visible_text};
use mcp::{LoginPrompt, OpenBrowser, client_metadata};
use serde_json::{Map, Value, json};

pub(crate) use arguments::McpTask;
use arguments::{AddArguments, ImportArguments};
use context::McpContext;

use super::{failed, print_bytes};
use crate::attaching::refusal_inside_tool_call;
use crate::mcp_entries;
use crate::output::note;
use crate::servers;
use crate::{lifetime, working_folder};

pub(crate) fn run(task: McpTask) -> ExitCode {
    let environment = Arc::new(Environment::from_process());
    if task.changes_something()
        && let Some(failure) = refusal_inside_tool_call("changes servers and logins")
    {
        return failed(&failure);
    }
    let folders = working_folder::current_folder();
    let inputs = Inputs { workspace_roots: folders.clone(), ..Inputs::default() };
    let resolved = config::resolve(&environment, &inputs);
    let context = McpContext { environment, resolved, folders };
    let done = match task {
        McpTask::List { json } => return status::list(&context, json),
        McpTask::Test { name, json } => return status::test(&context, &name, json),
        McpTask::Login { name } => return context.login(&name),
        McpTask::Logout { name } => return context.logout(&name),
        McpTask::Get { name, json } => context.get(&name, json),
        McpTask::Add(arguments) => context.add(*arguments),
        McpTask::AddJson { name, entry, project } => context.add_json(&name, &entry, project),
        McpTask::Import(arguments) => context.import(arguments),
        McpTask::Remove { name } => context.remove(&name),
        McpTask::Enable { name } => context.enable(&name),
        McpTask::Disable { name } => context.switch(&name, &json!({"disabled": true}), "off"),
        McpTask::ClientMetadata { url, port } => context.client_metadata(url, port),
    };
    match done {
        Ok(text) => print_bytes(format!("{}\n", visible_text(text.trim_end())).as_bytes()),
        Err(failure) => failed(&failure),
    }
}

impl McpContext {
    fn add(&self, arguments: AddArguments) -> Result<String, Failure> {
        let (name, is_project) = (arguments.name.clone(), arguments.project);
        let entry = arguments.entry()?;
        let folder = self.folder(is_project);
        let saved = mcp_entries::add(&self.environment, &name, &entry, folder.as_deref())?;
        Ok(format!("{name} is added. {}\nTry it: dragoman mcp test {name}", saved_text(&saved)))
    }

    fn add_json(&self, name: &str, entry: &str, is_project: bool) -> Result<String, Failure> {
        let entry: Value = config::parse_json_with_comments(entry)
            .map_err(|reason| Failure::user(format!("The entry cannot be read: {reason}.")))?;
        let folder = self.folder(is_project);
        let saved = mcp_entries::add(&self.environment, name, &entry, folder.as_deref())?;
        Ok(format!("{name} is added. {}\nTry it: dragoman mcp test {name}", saved_text(&saved)))
    }

    fn import(&self, arguments: ImportArguments) -> Result<String, Failure> {
        let file = arguments.file(&self.environment);
        let text = std::fs::read_to_string(&file)
            .map_err(|error| Failure::user(format!("{} cannot be read: {error}.", file.display())))?;
        let is_toml = file.extension().is_some_and(|extension| extension == "toml");
        let found = import::servers::from_other_program(&text, is_toml)?;
        if found.is_empty() {
            return Err(Failure::user(format!("{} has no MCP servers.", file.display())));
        }
        let folder = self.folder(arguments.project);
        let limits = import::servers::tool_limits(&text, is_toml);
        let mut lines = Vec::new();
        for (name, entry) in found {
            if limits.iter().any(|(limited, _)| *limited == name) {
                let why = "some of its tools are switched off there; `dragoman import` imports it where it can keep them off";
                lines.push(format!("{name} is left out: {why}."));
                continue;
            }
            let added = entry.map_err(Failure::user).and_then(|entry| {
                mcp_entries::add(&self.environment, &name, &entry, folder.as_deref()).map(drop)
            });
            lines.push(match added {
                Ok(()) => format!("{name} is added."),
                Err(failure) => format!("{name} is left out: {}", failure.message),
            });
        }
        lines.push("Look at them: dragoman mcp list".to_owned());
        Ok(lines.join("\n"))
    }

    fn remove(&self, name: &str) -> Result<String, Failure> {
        let saved = mcp_entries::remove(&self.environment, &self.folders, name)?;
        Ok(format!("{name} is removed. {}", saved_text(&saved)))
    }

    /// The user says yes to the server as it is now, so its tools may differ from those of before.
    fn enable(&self, name: &str) -> Result<String, Failure> {
        let switched = self.switch(name, &json!({"disabled": null}), "on")?;
        let _ = self.servers().forget_list(name);
        Ok(switched)
    }

    fn switch(&self, name: &str, changes: &Value, state: &str) -> Result<String, Failure> {
        let saved = mcp_entries::update(&self.environment, &self.folders, name, changes)?;
        Ok(format!("{name} is switched {state}. {}", saved_text(&saved)))
    }

    fn get(&self, name: &str, is_json: bool) -> Result<String, Failure> {
        let (file, entry) = mcp_entries::find(&self.environment, &self.folders, name)?;
        // As `config show` masks it: variables and headers may be secrets.
        let shown = config::masked_server_entry(&entry);
        if is_json {
            return Ok(format!("{:#}", json!({"name": name, "file": file.path(), "entry": shown})));
        }
        let mut lines = vec![format!("{name}, in {}", file.path().display())];
        let members: Map<String, Value> = shown.as_object().cloned().unwrap_or_default();
        lines.extend(members.iter().map(|(member, value)| format!("  {member}: {value}")));
        Ok(lines.join("\n"))
    }

    fn client_metadata(&self, url: Option<String>, port: Option<u16>) -> Result<String, Failure> {
        let url = url.or_else(|| self.resolved.settings.mcp_client_metadata_url.clone());
        let url = url.filter(|url| url.starts_with("https://")).ok_or_else(|| {
            Failure::user("The https address at which you will host the document is missing.")
                .hint("dragoman mcp client-metadata https://me.example.com/dragoman.json")
        })?;
        Ok(format!("{:#}", client_metadata(&url, None, port)))
    }

    fn login(&self, name: &str) -> ExitCode {
        lifetime::run(async {
            let servers = self.servers();
            let prompt = TerminalPrompt { open: servers::browser(&self.environment) };
            let login = servers.supervisor().login(name, &prompt);
            let Some(done) = lifetime::until_signal(login).await else { return Ok(()) };
            let done = done?;
            let scope = done.scope.map(|scope| format!(" with the rights {scope}")).unwrap_or_default();
            let text = format!("You are logged in to {name} by {}{scope}.\n", done.issuer);
            self.report_unused_keyring();
            crate::output::print(visible_text(&text).as_bytes())
        })
    }

    /// Says that the login is in the file although the user wanted it in the keyring.
    fn report_unused_keyring(&self) {
        let place = self.resolved.settings.mcp_logins;
        let logins = servers::logins(&self.environment, Some(place));
        if place == McpLoginPlace::Keyring && !logins.is_sealed() {
            let file = McpLoginFile::new(&self.environment);
            note(&format!(
                "The keyring could not be used, so the login is kept in {}, which only you may read.",
                file.path().display()
            ));
        }
    }

    fn logout(&self, name: &str) -> ExitCode {
        lifetime::run(async {
            let had = self.servers().supervisor().logout(name).await?;
            let text = if had { "The login of" } else { "There was no login of" };
            let end = if had { " is deleted." } else { "." };
            crate::output::print_line(&format!("{text} {name}{end}"))
        })
    }
}

fn saved_text(saved: &SavedFile) -> String {
    let copy = saved.copy.as_ref().map(|copy| format!("; as it was before: {}", copy.display()));
    format!("Changed: {}{}", saved.path.display(), copy.unwrap_or_default())
}

/// Prints the address of a login and reads a pasted one.
struct TerminalPrompt {
    open: Option<OpenBrowser>,
}

impl LoginPrompt for TerminalPrompt {
    fn show(&self, url: &str) {
        note(&format!("Open this address in a browser to log in:\n\n  {}\n", visible_text(url)));
        note("Without a browser on this machine: log in elsewhere, then paste the address you end at here.");
        if let Some(open) = &self.open {
            open(url);
        }
    }

    fn pasted(&self) -> BoxFuture<'_, String> {
        Box::pin(async {
            loop {
                // A read of the terminal cannot be stopped; the runtime ends without waiting for it.
                let read = tokio::task::spawn_blocking(|| {
                    let mut line = String::new();
                    std::io::stdin().read_line(&mut line).map(|count| (count > 0).then_some(line))
                });
                match read.await {
                    Ok(Ok(Some(line))) if line.trim().is_empty() => {}
                    Ok(Ok(Some(line))) => return line,
                    _ => break,
                }
            }
            std::future::pending().await
        })
    }
}
