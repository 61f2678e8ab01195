//! The command line of `dragoman serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

pub(crate) const HELP: &str = "Example:\n  dragoman serve                     opens the page in your browser\n  dragoman serve -C ~/project        new chats work in this folder\n  dragoman serve --no-open --json    prints {\"url\", \"port\", \"pid\"} for scripts\n\nThe page is served on 127.0.0.1 only. Its link works once; press Enter for another one. Ctrl-C ends it and stops its turns.\n\nFor other machines, with TLS and accounts (`dragoman docs serve`):\n  dragoman serve tokens add anna --role drive --budget 20\n  dragoman serve --listen 192.0.2.7:8443 --host build.example.com --workspace ~/project\n  dragoman serve audit --verify\nAll users of one server share its operating-system account.";

#[derive(Args)]
pub(crate) struct ServeArguments {
    #[command(subcommand)]
    pub task: Option<ServeTask>,
    /// New chats work in this folder; the current one by default.
    #[arg(short = 'C', long, value_name = "DIR", conflicts_with = "listen")]
    pub cwd: Option<PathBuf>,
    /// Print the link only, and open no browser.
    #[arg(long)]
    pub no_open: bool,
    /// The port on 127.0.0.1, in place of a free one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "listen")]
    pub port: Option<u16>,
    /// One line of JSON in place of text.
    #[arg(long)]
    pub json: bool,
    /// Serve other machines at this address, with TLS and accounts.
    #[arg(long, value_name = "IP:PORT")]
    pub listen: Option<SocketAddr>,
    /// A folder that accounts may work in; can be given several times.
    #[arg(long, value_name = "DIR", requires = "listen")]
    pub workspace: Vec<PathBuf>,
    /// A name under which clients reach this server, with the port where another one is forwarded to it (`ssh -L`, a
    /// container); can be given several times.
    #[arg(long, value_name = "NAME[:PORT]")]
    pub host: Vec<String>,
    /// The certificate chain, in PEM; without it a certificate is made and kept.
    #[arg(long, value_name = "FILE", requires = "listen", requires = "key")]
    pub cert: Option<PathBuf>,
    /// The key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// What all accounts together may spend, in US dollars.
    #[arg(long, value_name = "USD", requires = "listen")]
    pub budget: Option<f64>,
    /// An MCP server of this name may come from a client, with any command; can be given several times.
    #[arg(long, value_name = "NAME", requires = "listen")]
    pub allow_mcp: Vec<String>,
    /// Such a server may be given this variable by a client; can be given several times.
    #[arg(long, value_name = "NAME", requires = "listen")]
    pub allow_env: Vec<String>,
    /// This setting may come from a client; can be given several times.
    #[arg(long, value_name = "NAME", requires = "listen")]
    pub allow_setting: Vec<String>,
}

#[derive(Subcommand)]
pub(crate) enum ServeTask {
    /// Accounts of this server: add, list, change, revoke.
    #[command(
        subcommand,
        after_help = "Example:\n  dragoman serve tokens add anna --role drive\n  dragoman serve tokens list"
    )]
    Tokens(TokensTask),
    /// Who logged in, prompted, approved and was refused.
    #[command(after_help = "Example:\n  dragoman serve audit\n  dragoman serve audit --verify")]
    Audit {
        /// Check that no entry was changed or removed; exit code 1 if one was.
        #[arg(long)]
        verify: bool,
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand)]
pub(crate) enum TokensTask {
    /// Make an account and print its token, which is not shown again.
    #[command(
        after_help = "Example:\n  dragoman serve tokens add anna --role drive --budget 20\n  dragoman serve tokens add screen --role view --workspace ~/project"
    )]
    Add {
        /// The name of the account.
        name: String,
        /// What the account may do.
        #[arg(long, value_enum)]
        role: RoleArgument,
        /// What it may spend in all, in US dollars.
        #[arg(long, value_name = "USD")]
        budget: Option<f64>,
        /// Only these folders of the server; can be given several times.
        #[arg(long, value_name = "DIR")]
        workspace: Vec<PathBuf>,
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// List the accounts with role, budget and what they have spent.
    #[command(after_help = "Example:\n  dragoman serve tokens list --json")]
    List {
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Change the role or the budget of an account; its token stays, what it has open ends within seconds.
    #[command(after_help = "Example:\n  dragoman serve tokens change anna --budget 40")]
    Change {
        /// The name of the account.
        name: String,
        /// What the account may do from now on.
        #[arg(long, value_enum, required_unless_present = "budget")]
        role: Option<RoleArgument>,
        /// What it may spend in all, in US dollars.
        #[arg(long, value_name = "USD")]
        budget: Option<f64>,
    },
    /// End an account: its token is refused at once, what it has open ends within seconds.
    #[command(after_help = "Example:\n  dragoman serve tokens revoke anna")]
    Revoke {
        /// The name of the account.
        name: String,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum RoleArgument {
    /// Opens, lists and follows chats.
    View,
    /// Also prompts, steers, stops, approves and answers.
    Drive,
    /// Everything that the server allows.
    Admin,
}
