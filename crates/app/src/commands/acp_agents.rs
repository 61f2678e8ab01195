//! `dragoman acp-agents`: agents of other vendors on this machine, their entries in the user's settings, their logins.
//!
//! Invariants: commands that change something refuse to run inside a tool call: the model must not give itself programs; an
//! agent's credentials are never read here.

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use acp_client::{AuthMethod, Limits, Probe};
use clap::{Args, Subcommand};
use config::{AcpAgentFile, Environment, Inputs, SavedFile};
use domain::{Failure, visible_text};
use external_agents::{AgentEntry, ExternalAgents};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::failed;
use crate::agents;
use crate::attaching::refusal_inside_tool_call;
use crate::output::{note, note_part, print, print_line};
use crate::{lifetime, sandboxing, working_folder};

pub(crate) const HELP: &str = "Example:\n  dragoman acp-agents list\n  dragoman acp-agents login claude\n  dragoman chat --model acp:claude/default\n\n`dragoman docs other-agents` says what works with each.";

#[derive(Subcommand)]
pub(crate) enum AcpAgentsTask {
    /// List the agents that are known, whether they are installed, and how to install them.
    #[command(
        after_help = "Example:\n  dragoman acp-agents list\n  dragoman acp-agents list --check   starts each: version and login\n  dragoman acp-agents list --json | jq -r '.agents[] | select(.installed).model'"
    )]
    List {
        /// Start each installed agent in the sandbox and show its version and whether it needs a login.
        #[arg(long)]
        check: bool,
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Add an agent: any program that speaks the Agent Client Protocol.
    #[command(
        after_help = "Example:\n  dragoman acp-agents add mine -- my-agent --acp\n  dragoman acp-agents add theirs --from agent.json    an entry of the ACP registry"
    )]
    Add(AddArguments),
    /// Remove an agent from your settings.
    #[command(after_help = "Example:\n  dragoman acp-agents remove mine")]
    Remove {
        name: String,
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Log in to an agent in this terminal. Its credentials stay in its own files.
    #[command(
        after_help = "Example:\n  dragoman acp-agents login claude\n  dragoman acp-agents login gemini --method oauth-personal"
    )]
    Login {
        name: String,
        /// The way to log in, by its id.
        #[arg(long)]
        method: Option<String>,
        /// List the ways to log in, for scripts.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args)]
pub(crate) struct AddArguments {
    /// As in `acp:NAME/default`.
    name: String,
    /// An `agent.json` of the ACP registry.
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    from: Option<PathBuf>,
    /// Run it without the sandbox, with all your rights.
    #[arg(long)]
    no_sandbox: bool,
    /// For scripts.
    #[arg(long)]
    json: bool,
    /// The program and its arguments, after `--`.
    #[arg(last = true)]
    command: Vec<String>,
}

impl AcpAgentsTask {
    fn changes_something(&self) -> bool {
        !matches!(self, Self::List { .. })
    }
}

pub(crate) fn run(task: AcpAgentsTask) -> ExitCode {
    if task.changes_something()
        && let Some(failure) = refusal_inside_tool_call("changes agents and logins")
    {
        return failed(&failure);
    }
    lifetime::run(async move {
        let context = AgentsContext::new();
        match task {
            AcpAgentsTask::List { check, json } => context.list(check, json).await,
            AcpAgentsTask::Add(arguments) => context.add(&arguments),
            AcpAgentsTask::Remove { name, json } => context.remove(&name, json),
            AcpAgentsTask::Login { name, method, json } => {
                context.login(&name, method.as_deref(), json).await
            }
        }
    })
}

struct AgentsContext {
    environment: Arc<Environment>,
    agents: Arc<ExternalAgents>,
    folder: PathBuf,
}

impl AgentsContext {
    fn new() -> Self {
        let environment = Arc::new(Environment::from_process());
        let roots = working_folder::current_folder();
        let inputs = Inputs { workspace_roots: roots.clone(), ..Inputs::default() };
        let resolved = config::resolve(&environment, &inputs);
        let sandbox = sandboxing::workspace_sandbox(&environment, &resolved, &roots, &mut Vec::new());
        let agents = agents::of_workspace(&environment, &resolved, sandbox.as_ref(), None);
        Self { environment, agents, folder: roots.into_iter().next().unwrap_or_default() }
    }

    fn find(&self, name: &str) -> Result<&AgentEntry, Failure> {
        self.agents.find(name)?;
        let entry = self.agents.entries().iter().find(|entry| entry.name == name);
        entry.ok_or_else(|| Failure::user(format!("There is no agent {name}.")))
    }

    async fn list(&self, check: bool, is_json: bool) -> Result<(), Failure> {
        let entries = self.agents.entries();
        let probes = join_all(entries.iter().map(|entry| self.probe(entry, check))).await;
        let rows: Vec<_> = entries.iter().zip(probes).collect();
        if is_json {
            let shown: Vec<Value> =
                rows.iter().map(|(entry, probe)| row_json(entry, probe.as_ref())).collect();
            return print(format!("{:#}\n", json!({"agents": shown})));
        }
        let (installed, missing): (Vec<_>, Vec<_>) =
            rows.iter().partition(|(entry, _)| entry.program.is_some());
        let mut lines = Vec::new();
        for (entry, probe) in installed {
            let wall = if entry.is_confined { "in the sandbox" } else { "without a sandbox" };
            lines.push(format!("{:<24} {}, {wall}", entry.model(), probe_text(entry, probe.as_ref())));
        }
        if lines.is_empty() {
            lines.push("No agent is installed.".to_owned());
        }
        lines.push("\nNot installed:".to_owned());
        lines.extend(missing.iter().map(|(entry, _)| format!("{:<12} {}", entry.name, install_text(entry))));
        print(format!("{}\n", visible_text(&lines.join("\n"))))
    }

    async fn probe(&self, entry: &AgentEntry, is_wanted: bool) -> Option<Result<Probe, Failure>> {
        if !is_wanted || entry.program.is_none() {
            return None;
        }
        let launch = self.agents.launch_in(entry, &self.folder).await;
        let limits = Limits { opening: std::time::Duration::from_secs(30), ..Limits::default() };
        Some(match launch {
            Ok(launch) => acp_client::probe(&entry.name, launch.spawn, Some(&self.folder), &limits).await,
            Err(failure) => Err(failure),
        })
    }

    fn add(&self, arguments: &AddArguments) -> Result<(), Failure> {
        let name = &arguments.name;
        if !config::is_agent_name(name) {
            return Err(Failure::user(format!("{name:?} cannot be the name of an agent."))
                .hint("Use letters, digits, hyphens and underscores."));
        }
        let mut entry = match (&arguments.from, arguments.command.split_first()) {
            (Some(file), _) => external_agents::registry_entry(&read_json(file)?)?,
            (None, Some((command, args))) => json!({"command": command, "args": args}),
            (None, None) => {
                return Err(Failure::user("The program of the agent is missing.")
                    .hint(format!("dragoman acp-agents add {name} -- PROGRAM ARGUMENTS")));
            }
        };
        if arguments.no_sandbox {
            entry["sandbox"] = json!(false);
        }
        let file = AcpAgentFile::of_user(&self.environment);
        if file.entry(name)?.is_some() {
            return Err(Failure::user(format!("Your settings have an agent {name} already."))
                .hint(format!("Remove it first: dragoman acp-agents remove {name}")));
        }
        let saved = file.put(name, &entry)?;
        let text = format!(
            "{name} is added to {}.\nTry it: dragoman chat --model acp:{name}/default",
            place(&saved)
        );
        confirm(arguments.json, &text, &json!({"name": name, "entry": entry, "file": place(&saved)}))
    }

    fn remove(&self, name: &str, is_json: bool) -> Result<(), Failure> {
        let file = AcpAgentFile::of_user(&self.environment);
        if file.entry(name)?.is_none() {
            return Err(Failure::user(format!("Your settings have no agent {name}."))
                .hint("Known agents need no entry; `\"disabled\": true` leaves one out."));
        }
        let saved = file.remove(name)?;
        let text = format!("{name} is removed from {}.", place(&saved));
        confirm(is_json, &text, &json!({"name": name, "file": place(&saved)}))
    }

    async fn login(&self, name: &str, wanted: Option<&str>, is_json: bool) -> Result<(), Failure> {
        let entry = self.find(name)?;
        let launcher = self.agents.launcher(entry);
        // A login opens browsers and writes settings of the agent: the user runs it, so it has the user's rights.
        let probe = acp_client::probe(name, launcher.spawn().await?, None, &Limits::default()).await?;
        if is_json {
            let methods: Vec<Value> = probe.auth_methods.iter().map(method_json).collect();
            return print(format!("{:#}\n", json!({"name": name, "title": probe.title, "methods": methods})));
        }
        let method = choose(&probe.auth_methods, wanted)?;
        match &method.terminal {
            Some((command, args)) => {
                let (program, args) = match command {
                    Some(command) => (command.clone(), args.clone()),
                    None => (entry.command.clone(), [entry.args.clone(), args.clone()].concat()),
                };
                note(&format!("{} logs in:", probe.title));
                let exit = process::foreground(&program, &args).await;
                let exit =
                    exit.map_err(|error| Failure::user(format!("The login could not start: {error}.")))?;
                if !exit.success() {
                    return Err(Failure::auth(format!("The login of {name} did not succeed.")));
                }
            }
            None => {
                note(&format!("{} logs in by {}; it may open a browser.", probe.title, method.name));
                let limits = Limits { opening: std::time::Duration::from_secs(600), ..Limits::default() };
                acp_client::authenticate(name, launcher.spawn().await?, &method.id, &limits).await?;
            }
        }
        print_line(&format!("{name} is logged in. Try it: dragoman chat --model {}", entry.model()))
    }
}

fn confirm(is_json: bool, text: &str, value: &Value) -> Result<(), Failure> {
    if is_json { print(format!("{value:#}\n")) } else { print_line(&visible_text(text)) }
}

fn place(saved: &SavedFile) -> String {
    saved.path.display().to_string()
}

fn choose<'a>(methods: &'a [AuthMethod], wanted: Option<&str>) -> Result<&'a AuthMethod, Failure> {
    if let Some(wanted) = wanted {
        let names: Vec<&str> = methods.iter().map(|method| method.id.as_str()).collect();
        return methods.iter().find(|method| method.id == wanted).ok_or_else(|| {
            Failure::user(format!("There is no way {wanted} to log in. There are: {}.", names.join(", ")))
        });
    }
    match methods {
        [] => Err(Failure::user("The agent offers no login here.").hint("Log in by its own program.")),
        [only] => Ok(only),
        several if !std::io::stdin().is_terminal() => {
            let names: Vec<&str> = several.iter().map(|method| method.id.as_str()).collect();
            Err(Failure::user(format!("There are several ways to log in: {}.", names.join(", ")))
                .hint("Name one with --method."))
        }
        several => {
            for (number, method) in (1..).zip(several) {
                note(&visible_text(&format!("{number}  {} {}", method.name, method.description)));
            }
            note_part("The way to log in: ");
            let mut line = String::new();
            let read = std::io::stdin().lock().read_line(&mut line).ok();
            let number =
                read.and_then(|_| line.trim().parse::<usize>().ok()).and_then(|it| it.checked_sub(1));
            let chosen = number.and_then(|at| several.get(at));
            chosen.ok_or_else(|| Failure::user("No way to log in was chosen; nothing was changed."))
        }
    }
}

fn method_json(method: &AuthMethod) -> Value {
    json!({"id": method.id, "name": method.name, "description": method.description, "terminal": method.terminal.is_some()})
}

fn row_json(entry: &AgentEntry, probe: Option<&Result<Probe, Failure>>) -> Value {
    let mut row = entry.to_json();
    match probe {
        Some(Ok(probe)) => {
            row["version"] = json!(probe.title);
            row["needsLogin"] = json!(probe.needs_login);
            row["loadsSessions"] = json!(probe.can_load);
        }
        Some(Err(failure)) => row["problem"] = json!(failure.to_string()),
        None => {}
    }
    row
}

fn probe_text(entry: &AgentEntry, probe: Option<&Result<Probe, Failure>>) -> String {
    let login = &entry.name;
    match probe {
        None => entry.title.clone(),
        Some(Ok(probe)) => match probe.needs_login {
            Some(true) => format!("{}, needs a login: dragoman acp-agents login {login}", probe.title),
            Some(false) => format!("{}, ready", probe.title),
            None => format!("{}, its login is not known", probe.title),
        },
        Some(Err(failure)) => format!("{}: {failure}", entry.title),
    }
}

fn install_text(entry: &AgentEntry) -> String {
    if entry.install.is_empty() {
        format!("{} is not found", entry.command)
    } else {
        entry.install.to_owned()
    }
}

fn read_json(file: &std::path::Path) -> Result<Value, Failure> {
    let unreadable = |reason: String| Failure::user(format!("{} cannot be read: {reason}.", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(error.to_string()))?;
    config::parse_json_with_comments(&text).map_err(unreadable)
}
