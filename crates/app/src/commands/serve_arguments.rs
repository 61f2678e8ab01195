//! The command line of `dragoman serve`.

use std::path::PathBuf;

use clap::Args;

pub(crate) const HELP: &str = "Example:\n  dragoman serve                     opens the page in your browser\n  dragoman serve -C ~/project        new chats work in this folder\n  dragoman serve --no-open --json    prints {\"url\", \"port\", \"pid\"} for scripts\n\nThe page is served on 127.0.0.1 only. Its link works once; press Enter for another one. Ctrl-C ends it and stops its turns.";

#[derive(Args)]
pub(crate) struct ServeArguments {
    /// New chats work in this folder; the current one by default.
    #[arg(short = 'C', long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Print the link only, and open no browser.
    #[arg(long)]
    pub no_open: bool,
    /// The port on 127.0.0.1, in place of a free one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// One line of JSON in place of text.
    #[arg(long)]
    pub json: bool,
}
