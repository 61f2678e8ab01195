//! `dragoman login` and `dragoman logout`: stores and deletes keys and sign-ins of the user.

use std::io::{BufRead, IsTerminal, Read};
use std::process::ExitCode;
use std::sync::Arc;

use config::{CredentialFile, Credentials, Environment, Inputs, Resolved, StoredCredential};
use domain::Failure;
use providers::github::{self, SignInServer};

use super::{connect, failed, finish};
use crate::attaching::refusal_inside_tool_call;
use crate::lifetime;
use crate::output::{deliver, note_part, print, print_line};

/// The maximum length of a key.
const MAX_KEY_BYTES: u64 = 16 << 10;

pub(crate) fn login(provider: Option<&str>) -> ExitCode {
    let environment = Environment::from_process();
    let resolved = resolved(&environment);
    let Some(provider) = provider else { return list(&environment, &resolved) };
    if let Some(failure) = refusal_inside_tool_call("changes logins") {
        return failed(&failure);
    }
    let kept = Arc::new(CredentialFile::new(&environment));
    if is_server(provider) {
        return store_token(provider, kept.as_ref());
    }
    if let Err(failure) = check_provider(provider, &resolved) {
        failed(&failure);
        return ExitCode::from(2);
    }
    if provider == github::PROVIDER {
        return lifetime::run(async { sign_in_to_github(&resolved, kept.as_ref()).await });
    }
    let stored = read_key(provider).and_then(|key| kept.put(provider, StoredCredential::Key { key }));
    finish(stored.and_then(|()| {
        let place = kept.path().display();
        print(format!(
            "The key of {provider} is stored in {place}.\n`dragoman models` lists what can be used now.\n"
        ))
    }))
}

/// An address is that of a server for `--connect`.
fn is_server(name: &str) -> bool {
    name.contains("://")
}

fn store_token(url: &str, kept: &CredentialFile) -> ExitCode {
    let stored = connect::credential_name(url).and_then(|name| {
        let key = read_key(&name)?;
        kept.put(&name, StoredCredential::Key { key }).map(|()| name)
    });
    let place = kept.path().display();
    finish(stored.and_then(|name| print_line(&format!("The token of {name} is stored in {place}."))))
}

/// Asks for the provider, then for its key: the login that an editor starts in its terminal.
pub(crate) fn choose() -> ExitCode {
    let environment = Environment::from_process();
    let kept = CredentialFile::new(&environment).providers();
    if let Err(failure) = print(key_lines(&resolved(&environment), &kept)) {
        return failed(&failure);
    }
    note_part("\nThe provider to log in to: ");
    let mut line = String::new();
    // The lock ends here: the key is read next.
    let read = std::io::stdin().lock().take(256).read_line(&mut line);
    match read {
        Ok(_) if !line.trim().is_empty() => login(Some(line.trim())),
        _ => failed(&Failure::user("No provider was named; nothing is stored.")),
    }
}

pub(crate) fn logout(provider: &str) -> ExitCode {
    if let Some(failure) = refusal_inside_tool_call("changes logins") {
        return failed(&failure);
    }
    let kept = CredentialFile::new(&Environment::from_process());
    let server =
        if is_server(provider) { connect::credential_name(provider) } else { Ok(provider.to_owned()) };
    let provider = match &server {
        Ok(name) => name.as_str(),
        Err(failure) => return failed(failure),
    };
    match kept.remove(provider) {
        Ok(true) => finish(print_line(&format!("The key of {provider} is deleted."))),
        Ok(false) => failed(
            &Failure::user(format!("No key of {provider} is stored."))
                .hint("Remove a key of the environment or of a configuration file there."),
        ),
        Err(failure) => failed(&failure),
    }
}

fn resolved(environment: &Environment) -> Resolved {
    let inputs = Inputs { workspace_roots: crate::working_folder::current_folder(), ..Inputs::default() };
    config::resolve(environment, &inputs)
}

fn check_provider(provider: &str, resolved: &Resolved) -> Result<(), Failure> {
    if llm::vendors::vendor(provider).is_some() || resolved.settings.providers.contains_key(provider) {
        return Ok(());
    }
    let names: Vec<&str> = llm::vendors::VENDORS.iter().map(|vendor| vendor.name).collect();
    Err(Failure::user(format!("{provider} is not a provider."))
        .hint(format!("There are {}, and those of your configuration.", names.join(", "))))
}

fn list(environment: &Environment, resolved: &Resolved) -> ExitCode {
    let kept = CredentialFile::new(environment).providers();
    let lines = key_lines(resolved, &kept);
    finish(print(format!("{:<16} key\n{lines}\nName one: dragoman login anthropic\n", "provider")))
}

fn key_lines(resolved: &Resolved, kept: &[String]) -> String {
    providers::keys(resolved, kept).iter().map(|(name, state)| format!("{name:<16} {state}\n")).collect()
}

async fn sign_in_to_github(resolved: &Resolved, kept: &dyn Credentials) -> Result<(), Failure> {
    let network = Arc::new(providers::network::of(resolved)?);
    let server = SignInServer::new(resolved.settings.providers.get(github::PROVIDER), network);
    let device = server.begin().await?;
    // Without the code nobody can sign in.
    deliver(format!(
        "Open {} and type the code {}.\nWaiting for the sign-in (Ctrl-C cancels) …\n",
        device.verification_uri, device.user_code
    ))?;
    let signed_in = server.finish(&device).await?;
    kept.put(github::PROVIDER, signed_in)?;
    print_line("You are signed in to GitHub Copilot.")
}

/// Reads the key from the terminal without echo, or the first line of a pipe.
fn read_key(provider: &str) -> Result<String, Failure> {
    let typed = if std::io::stdin().is_terminal() {
        note_part(&format!("The key of {provider} (not shown): "));
        let typed = platform::terminal::read_hidden_line();
        note_part("\n");
        typed
    } else {
        let mut text = String::new();
        std::io::stdin().take(MAX_KEY_BYTES).read_to_string(&mut text).map(|_| text)
    };
    let text = typed.map_err(|error| Failure::user(format!("The key could not be read: {error}.")))?;
    let key = text.lines().next().unwrap_or_default().trim().to_owned();
    if key.is_empty() || key.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(Failure::user("This is not a key; nothing is stored.").hint("A key is one word."));
    }
    Ok(key)
}
