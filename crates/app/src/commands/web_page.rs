//! A page of this machine: its link on stdout, another one for each Enter, and the browser that opens it.

use std::io::{BufRead, IsTerminal};
use std::time::Duration;

use config::Environment;
use domain::{CancellationToken, Failure};
use process::Spawn;
use serde_json::json;
use web::Bound;

use crate::output::deliver;

const BROWSER_TIMEOUT: Duration = Duration::from_secs(60);

/// How a page is announced.
pub(super) struct Start {
    /// The word before the link.
    pub(super) name: &'static str,
    pub(super) no_open: bool,
    pub(super) json: bool,
}

/// Prints the link and opens the browser.
pub(super) fn announce(start: &Start, bound: &Bound, environment: &Environment) -> Result<(), Failure> {
    let link = bound.new_link().map_err(|error| Failure::internal(error.to_string()))?;
    if start.json {
        deliver(format!("{}\n", json!({"url": link, "port": bound.port(), "pid": std::process::id()})))?;
    } else {
        let end = "The link works once; press Enter for another one. Ctrl-C ends it.";
        deliver(format!("{}: {link}\n{end}\n", start.name))?;
    }
    if !start.no_open {
        open_browser(environment, link);
    }
    if !start.json && std::io::stdin().is_terminal() {
        print_links_on_enter(start.name, bound.clone());
    }
    Ok(())
}

pub(super) fn no_port(port: Option<u16>, error: &std::io::Error) -> Failure {
    let place = port.map_or_else(|| "a free port".to_owned(), |port| format!("port {port}"));
    Failure::user(format!("The page cannot be served at {place}: {error}."))
        .hint("Choose another one with --port, or leave it out.")
}

fn print_links_on_enter(name: &'static str, bound: Bound) {
    // The thread ends with the process: a read of a terminal cannot be interrupted.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let (Ok(_), Ok(link)) = (line, bound.new_link()) else { return };
            if deliver(format!("{name}: {link}\n")).is_err() {
                return;
            }
        }
    });
}

/// `BROWSER`, or what the desktop opens addresses with.
fn open_browser(environment: &Environment, link: String) {
    let own = environment.var("BROWSER").and_then(|list| list.split(':').next()).map(str::to_owned);
    let has_desktop = environment.first(&["DISPLAY", "WAYLAND_DISPLAY"]).is_some();
    let usual = if platform::System::CURRENT == platform::System::MacOs {
        Some("open")
    } else {
        has_desktop.then_some("xdg-open")
    };
    let Some(program) = own.or_else(|| usual.map(str::to_owned)) else { return };
    tokio::spawn(async move {
        let stop = CancellationToken::new();
        let opened = Spawn::new(&program).arg(&link).deadline(BROWSER_TIMEOUT).run(&stop).await;
        if let Err(error) = opened {
            tracing::info!(%error, "the browser could not be started");
        }
    });
}
