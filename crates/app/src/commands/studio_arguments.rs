//! The command line of `dragoman studio`.

use clap::Args;

pub(crate) const HELP: &str = "Example:\n  dragoman studio                     opens the page in your browser\n  dragoman studio openapi.yaml        with this specification in a new tab\n  dragoman studio --no-open --json    prints {\"url\", \"port\", \"pid\"} for scripts\n\nThe page is served on 127.0.0.1 only. Its link works once; press Enter for another one. Ctrl-C ends it.";

#[derive(Args)]
pub(crate) struct StudioArguments {
    /// OpenAPI 3, Swagger 2 or GraphQL: a file or an http(s) address to open in a new tab.
    pub spec: Option<String>,
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
