//! `dragoman mcp-server`: Dragoman's own tools for other programs, on stdin and stdout.
//!
//! Nobody can be asked here. Invariants: a call that policy would ask about is refused unless `--approve` covers it; every
//! call has a budget and a deadline; a client continues only chats that it began itself; results have no known secret.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use config::Environment;
use domain::command::WorkspaceSpec;
use domain::link::Engine;
use domain::store::SearchQuery;
use domain::{Abilities, Command, Failure, Link, SessionId};
use mcp::served::{CallOutcome, LocalFuture, RunningCall, ServedTools};
use serde_json::{Value, json};
use terminal::text::clean;
use terminal::{OutputFormat, RunOptions};
use tokio::sync::OnceCell;

use super::failed;
use crate::approve::{Approve, join_grants};
use crate::cli::Level;
use crate::commands::server::on_stdio;
use crate::logging::mask_secrets;
use crate::working_folder;

pub(crate) const HELP: &str = "Example (Claude Code):\n  claude mcp add dragoman -- dragoman mcp-server --approve edit\n  \
     claude mcp add shop -- dragoman mcp-server --spec openapi.yaml --auth SHOP_TOKEN\n\n\
     Nobody can be asked: calls that your rules would ask about are refused unless --approve covers them.";

/// A program that works for a program that works for another one is the last.
const MAX_NESTING: u32 = 2;
const MAX_HITS: u64 = 50;
/// A chat that an earlier call has just left is closed first; continuing it waits for that.
const CLOSING_ATTEMPTS: usize = 100;
const CLOSING_WAIT: Duration = Duration::from_millis(50);

#[derive(clap::Args)]
pub(crate) struct McpServerArguments {
    /// The folder to work in; the current one by default.
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<PathBuf>,
    /// Tool calls that may run without approval: `read`, or `edit,network`.
    #[arg(long, value_enum, value_delimiter = ',')]
    approve: Vec<Approve>,
    /// The deadline of each call.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// The most that each call may cost, in dollars.
    #[arg(long, value_name = "DOLLARS")]
    max_cost: Option<f64>,
    /// The most requests to the model of each call.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: u32,
    /// The model; the configured one by default.
    #[arg(long, value_name = "PROVIDER/NAME")]
    model: Option<String>,
    /// Search the chats of all folders, not of this one alone.
    #[arg(long)]
    all_chats: bool,
    /// Offer the operations of an API in place of Dragoman's own tools: a specification's file or address.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["approve", "timeout", "max_cost", "max_steps", "model", "all_chats"])]
    pub(super) spec: Option<String>,
    /// The address of the API, where it is not the one of the specification.
    #[arg(long, value_name = "URL", requires = "spec")]
    pub(super) server: Option<String>,
    /// The environment variable with the secret for a security scheme; `VARIABLE` alone where there is one scheme.
    #[arg(long, value_name = "SCHEME=VARIABLE", requires = "spec")]
    pub(super) auth: Vec<String>,
    /// Fetch parts of the specification that are on the network.
    #[arg(long, requires = "spec")]
    pub(super) fetch_refs: bool,
    /// Give an agent of another vendor the tools of the chat that started it; only Dragoman uses this.
    #[arg(long, hide = true)]
    bridge: bool,
}

pub(crate) fn run(arguments: McpServerArguments, level: Option<Level>) -> ExitCode {
    if arguments.bridge {
        return super::tool_bridge::run();
    }
    if let Some(spec) = arguments.spec {
        let options = ApiServer {
            spec,
            server: arguments.server,
            auth: arguments.auth,
            fetch_refs: arguments.fetch_refs,
        };
        return super::interfaces::api_server(options, level);
    }
    let prepared = working_folder::change_folder(arguments.cwd.as_deref()).and_then(|()| {
        if arguments.max_cost.is_some_and(|cost| !cost.is_finite() || cost < 0.0) {
            return Err(Failure::user("--max-cost takes a number of dollars."));
        }
        working_folder::roots(&[])
    });
    let roots = match prepared {
        Ok(roots) => roots,
        Err(failure) => {
            failed(&failure);
            return ExitCode::from(2);
        }
    };
    let depth = process::enter_nesting();
    let environment = Rc::new(Environment::from_process());
    on_stdio(level, |engine, transport, _| {
        let tools = Tools {
            engine,
            arguments: Rc::new(arguments),
            roots,
            environment,
            depth,
            own: Rc::default(),
            held: Rc::default(),
        };
        mcp::served::serve(Rc::new(tools), transport)
    })
}

/// The API that `--spec` names.
pub(crate) struct ApiServer {
    pub spec: String,
    pub server: Option<String>,
    pub auth: Vec<String>,
    pub fetch_refs: bool,
}

struct Tools {
    engine: Engine,
    arguments: Rc<McpServerArguments>,
    roots: Vec<PathBuf>,
    environment: Rc<Environment>,
    depth: u32,
    /// The chats that calls of this connection began.
    own: Rc<RefCell<HashSet<String>>>,
    /// A front-end that stays in the workspace from the first call on, so that its servers run on between calls.
    held: Rc<OnceCell<Link>>,
}

impl ServedTools for Tools {
    fn definitions(&self) -> Vec<Value> {
        let prompt = |about: &str| {
            json!({
                "type": "object",
                "properties": {
                    "prompt": {"type": "string", "description": about},
                    "chat": {"type": "string", "description": "Continues a chat that an earlier call began, by its id."},
                },
                "required": ["prompt"],
            })
        };
        let words = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words that must all be in a message."},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_HITS},
            },
            "required": ["query"],
        });
        let reads = json!({"readOnlyHint": true, "openWorldHint": true});
        vec![
            json!({"name": "ask", "description": "Answers a question about the folder. Changes nothing.",
                "inputSchema": prompt("The question, with everything that is needed to answer it."), "annotations": reads}),
            json!({"name": "run_task", "description": "Does a piece of work in the folder: reads, edits and runs commands \
                in a sandbox, as far as the user allows, and says what it did.",
                "inputSchema": prompt("The task, with everything that is needed to do it."),
                "annotations": {"readOnlyHint": false, "destructiveHint": true, "openWorldHint": true}}),
            json!({"name": "search_chats", "description": "Finds earlier chats in which a message has all the words.",
                "inputSchema": words, "annotations": {"readOnlyHint": true, "openWorldHint": false}}),
        ]
    }

    fn call(&self, name: &str, arguments: Value, call: RunningCall) -> Option<LocalFuture<CallOutcome>> {
        let behavior = match name {
            "ask" => Some("plan"),
            "run_task" => None,
            "search_chats" => return Some(self.search(&arguments)),
            _ => return None,
        };
        let checked = self.options(behavior, &arguments, &call);
        let (engine, own, held) = (self.engine.clone(), self.own.clone(), self.held.clone());
        Some(Box::pin(async move {
            let entered = async {
                let options = checked?;
                held.get_or_try_init(|| enter_workspace(&engine, &options)).await?;
                Ok(options)
            };
            match entered.await {
                Ok(options) => run_turn(&engine, options, &call, &own).await,
                Err(failure) => refused(&failure),
            }
        }))
    }
}

impl Tools {
    fn options(
        &self,
        behavior: Option<&str>,
        arguments: &Value,
        call: &RunningCall,
    ) -> Result<RunOptions, Failure> {
        if self.depth > MAX_NESTING {
            return Err(Failure::user(
                "This server was started by a task of a task of another one; deeper calls are refused.",
            ));
        }
        let text = |name: &str| arguments[name].as_str().filter(|text| !text.trim().is_empty());
        let prompt = text("prompt").ok_or_else(|| Failure::user("Give a prompt."))?;
        let chat = text("chat").map(str::to_owned);
        if let Some(chat) = chat.as_ref().filter(|chat| !self.own.borrow().contains(*chat)) {
            return Err(Failure::user(format!("No call of this connection began the chat {chat}.")));
        }
        // Slash commands belong to people.
        let is_command = prompt.trim_start().starts_with('/');
        let prompt = if is_command { format!("Task: {prompt}") } else { prompt.to_owned() };
        Ok(RunOptions {
            prompt,
            contexts: Vec::new(),
            roots: self.roots.clone(),
            model: self.arguments.model.clone(),
            behavior: behavior.map(str::to_owned),
            effort: None,
            fork: false,
            task: None,
            session: chat.map(SessionId::new),
            newest: false,
            grants: join_grants(&self.arguments.approve),
            max_cost: self.arguments.max_cost,
            failover: Vec::new(),
            max_steps: Some(self.arguments.max_steps),
            until: None,
            timeout: Some(Duration::from_secs(self.arguments.timeout)),
            stop: call.stop.clone(),
            format: OutputFormat::Summary,
            quiet: false,
            schema: None,
            trouble: None,
            to_terminal: false,
        })
    }

    fn search(&self, arguments: &Value) -> LocalFuture<CallOutcome> {
        let text = arguments["query"].as_str().unwrap_or_default().trim().to_owned();
        let limit = arguments["limit"].as_u64().unwrap_or(10).clamp(1, MAX_HITS);
        let limit = usize::try_from(limit).ok();
        let workspace = (!self.arguments.all_chats).then(|| self.roots.clone());
        let environment = self.environment.clone();
        Box::pin(async move {
            if text.is_empty() {
                return refused(&Failure::user("Give words to search for."));
            }
            match find(&environment, SearchQuery { text, workspace, limit }).await {
                Ok(found) => found,
                Err(failure) => refused(&failure),
            }
        })
    }
}

/// Enters the workspace and stays in it as long as the link is kept.
async fn enter_workspace(engine: &Engine, options: &RunOptions) -> Result<Link, Failure> {
    let abilities = Abilities { client: "mcp-server".into(), grants: options.grants, ..Abilities::default() };
    let link = engine.attach(abilities).await?;
    let workspace = WorkspaceSpec { roots: options.roots.clone(), options: None };
    link.commands.call(|reply| Command::Enter { workspace, reply }).await?;
    Ok(link)
}

/// One turn, as `dragoman run` has it.
async fn run_turn(
    engine: &Engine,
    options: RunOptions,
    call: &RunningCall,
    own: &RefCell<HashSet<String>>,
) -> CallOutcome {
    let mut summary = run_once(engine, options.clone(), call).await;
    for _ in 0..CLOSING_ATTEMPTS {
        let is_closing =
            summary["message"].as_str().is_some_and(|text| text.starts_with("This chat was just closed"));
        if !is_closing || call.stop.is_cancelled() {
            break;
        }
        tokio::time::sleep(CLOSING_WAIT).await;
        summary = run_once(engine, options.clone(), call).await;
    }
    let text = |name: &str| mask(summary[name].as_str().unwrap_or_default());
    let (answer, message, chat) = (text("text"), text("message"), text("session"));
    if !chat.is_empty() {
        own.borrow_mut().insert(chat.clone());
    }
    // A task whose calls were refused without an approval has an answer all the same.
    let is_error = !matches!(summary["exit"].as_u64(), Some(0 | 3));
    let parts: Vec<&str> =
        [answer.as_str(), message.as_str()].into_iter().filter(|it| !it.is_empty()).collect();
    let structured = json!({"chat": chat, "outcome": summary["outcome"], "usage": summary["usage"]});
    CallOutcome { text: parts.join("\n\n"), structured: Some(structured), is_error }
}

/// The summary that `dragoman run` prints as JSON.
async fn run_once(engine: &Engine, options: RunOptions, call: &RunningCall) -> Value {
    let (mut out, mut progress) = (Vec::new(), ProgressLines { call: call.clone(), line: Vec::new() });
    terminal::run(engine.clone(), options, &mut out, &mut progress).await;
    serde_json::from_slice(&out).unwrap_or_default()
}

async fn find(environment: &Environment, query: SearchQuery) -> Result<CallOutcome, Failure> {
    let hits = crate::stores::open(environment)?.search(query).await?;
    let chats: Vec<Value> = hits
        .iter()
        .map(|hit| {
            let title = mask(hit.chat.title.as_deref().unwrap_or_default());
            json!({
                "id": hit.chat.id.as_str(),
                "title": title,
                "workspace": hit.chat.workspace,
                "updatedAt": hit.chat.updated_at,
                "excerpt": mask(&hit.excerpt),
            })
        })
        .collect();
    let structured = json!({"chats": chats});
    Ok(CallOutcome { text: structured.to_string(), structured: Some(structured), is_error: false })
}

fn refused(failure: &Failure) -> CallOutcome {
    CallOutcome { text: mask(&failure.to_string()), structured: None, is_error: true }
}

fn mask(text: &str) -> String {
    clean(&mask_secrets(text)).into_owned()
}

/// Lines of progress for the client.
struct ProgressLines {
    call: RunningCall,
    line: Vec<u8>,
}

impl io::Write for ProgressLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for byte in bytes {
            if *byte != b'\n' {
                self.line.push(*byte);
                continue;
            }
            let line = String::from_utf8_lossy(&self.line).into_owned();
            self.line.clear();
            self.call.show_progress(&mask(&line));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
