//! `dragoman acp --connect` and `dragoman server --connect`: an editor on standard streams, and the engine of another machine.
//!
//! Invariant: the token comes from a file, the environment or the stored credentials, never from the command line.

use std::process::ExitCode;

use config::{CredentialFile, Credentials, Environment, Inputs, StoredCredential};
use domain::Failure;
use remote::{Address, Editor, Recovery, Target};
use rpc::Framing;
use serde_json::{Value, json};

use super::connect_arguments::ConnectArguments;
use super::failed;
use crate::attaching::refusal_inside_tool_call;
use crate::cli::Level;
use crate::{lifetime, logging, working_folder};

/// The largest message of an editor.
const LARGEST_MESSAGE: usize = 64 << 20;
const LONGEST_TOKEN: usize = 512;

/// What the relay must know of a protocol.
pub(crate) struct Protocol {
    endpoint: &'static str,
    framing: Framing,
    notice: fn(&str, Option<&str>) -> Option<Value>,
    recovery: Recovery,
}

pub(crate) const ACP: Protocol = Protocol {
    endpoint: "acp",
    framing: Framing::Newline,
    notice: acp_notice,
    recovery: Recovery {
        greeting: &["initialize", "authenticate"],
        opens: &["session/new", "session/load", "session/resume", "session/fork"],
        closes: &["session/close", "session/delete"],
        key: "sessionId",
        // Without the history, which the editor has.
        reopen: "session/resume",
        members: &["cwd", "additionalDirectories", "mcpServers"],
    },
};
pub(crate) const ECA: Protocol = Protocol {
    endpoint: "eca",
    framing: Framing::Header,
    notice: eca_notice,
    recovery: Recovery {
        greeting: &["initialize", "initialized"],
        opens: &["chat/prompt", "chat/open"],
        closes: &["chat/delete"],
        key: "chatId",
        // It clears the chat in the editor and shows all of it.
        reopen: "chat/open",
        members: &[],
    },
};

pub(crate) fn run(arguments: &ConnectArguments, protocol: &Protocol, level: Option<Level>) -> ExitCode {
    if let Some(failure) = refusal_inside_tool_call("connects to a server") {
        return failed(&failure);
    }
    let environment = Environment::from_process();
    logging::start(&environment, level);
    lifetime::run(async move {
        let target = target(arguments, protocol, &environment)?;
        let unreadable = |error| Failure::internal(format!("stdin cannot be read: {error}."));
        let transport = rpc::stdio().map_err(unreadable)?;
        let messages = rpc::messages(protocol.framing, LARGEST_MESSAGE, transport).map_err(unreadable)?;
        let (notice, recovery) = (protocol.notice, protocol.recovery);
        let editor = Editor { messages, notice, prompt: "session/prompt", recovery };
        lifetime::until_signal(remote::relay(&target, editor)).await.unwrap_or(Ok(()))
    })
}

/// The name under which the token of a server is stored.
pub(crate) fn credential_name(url: &str) -> Result<String, Failure> {
    let address = Address::parse(url, "acp")?;
    let scheme = if address.is_secure { "https" } else { "http" };
    Ok(format!("{scheme}://{}", address.authority.to_ascii_lowercase()))
}

fn target(
    arguments: &ConnectArguments,
    protocol: &Protocol,
    environment: &Environment,
) -> Result<Target, Failure> {
    let url = arguments.connect.as_deref().unwrap_or_default();
    let address = Address::parse(url, protocol.endpoint)?;
    domain::hosts::check_address(&format!("https://{}", address.authority))?;
    let tls = if address.is_secure {
        let fingerprint = arguments.fingerprint.as_deref().map(remote::read_fingerprint).transpose()?;
        Some(remote::client_config(fingerprint, authorities(environment)?.as_deref())?)
    } else {
        None
    };
    let token = token(arguments, url, environment)?;
    Ok(Target { address, tls, token, program: concat!("dragoman/", env!("CARGO_PKG_VERSION")).to_owned() })
}

/// The file of `network.caCertFile`.
fn authorities(environment: &Environment) -> Result<Option<Vec<u8>>, Failure> {
    let inputs = Inputs { workspace_roots: working_folder::current_folder(), ..Inputs::default() };
    let Some(path) = config::resolve(environment, &inputs).settings.network.ca_cert_file else {
        return Ok(None);
    };
    let unreadable = |error| {
        Failure::config(format!("{} (network.caCertFile) cannot be read: {error}.", path.display()))
            .hint("Correct the setting, or give --fingerprint in place of it.")
    };
    std::fs::read(&path).map(Some).map_err(unreadable)
}

fn token(arguments: &ConnectArguments, url: &str, environment: &Environment) -> Result<String, Failure> {
    let text = match (&arguments.token_file, environment.var("DRAGOMAN_TOKEN")) {
        (Some(path), _) => std::fs::read_to_string(path)
            .map_err(|error| Failure::user(format!("{} cannot be read: {error}.", path.display())))?,
        (None, Some(token)) => token.to_owned(),
        (None, None) => match CredentialFile::new(environment).get(&credential_name(url)?)? {
            Some(StoredCredential::Key { key }) => key,
            _ => {
                return Err(Failure::auth("There is no token for this server.")
                    .hint("Set DRAGOMAN_TOKEN, give --token-file FILE, or store it: dragoman login URL"));
            }
        },
    };
    let token = text.trim();
    let is_token =
        (1..=LONGEST_TOKEN).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
    if is_token { Ok(token.to_owned()) } else { Err(Failure::auth("The token is not one: it is one word.")) }
}

/// As a thought of the turn that waits: the protocol has no other place that every client shows.
fn acp_notice(sentence: &str, session: Option<&str>) -> Option<Value> {
    let content = json!({"type": "text", "text": format!("{sentence}\n")});
    let update = json!({"sessionUpdate": "agent_thought_chunk", "content": content});
    let params = json!({"sessionId": session?, "update": update});
    Some(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
}

fn eca_notice(sentence: &str, _session: Option<&str>) -> Option<Value> {
    let params = json!({"type": "warning", "message": sentence});
    Some(json!({"jsonrpc": "2.0", "method": "$/showMessage", "params": params}))
}
