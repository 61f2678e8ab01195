//! The arguments of `dragoman mcp`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use config::Environment;
use domain::Failure;
use serde_json::{Map, Value, json};

#[derive(Subcommand)]
pub(crate) enum McpTask {
    /// Connect to every server and show its state, revision, tools and how long it took.
    #[command(
        after_help = "Exit code 1: a server that is switched on does not run.\n\nExample:\n  dragoman mcp list\n  dragoman mcp list --json | jq -r '.servers[] | select(.status != \"running\").name'"
    )]
    List {
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Show the entry of a server and its file; secrets are masked.
    #[command(after_help = "Example:\n  dragoman mcp get memory")]
    Get {
        name: String,
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Add a server: a program after `--`, or an address.
    #[command(
        after_help = "Example:\n  dragoman mcp add memory -- npx -y @modelcontextprotocol/server-memory\n  dragoman mcp add issues --url https://mcp.example.com/mcp --header 'X-Team: blue'\n  dragoman mcp add db --env 'DB_URL=${env:DB_URL}' --project -- db-server"
    )]
    Add(Box<AddArguments>),
    /// Add a server by its entry.
    #[command(
        after_help = "Example:\n  dragoman mcp add-json files '{\"command\": \"files\", \"args\": [\"/srv\"]}'"
    )]
    AddJson {
        name: String,
        /// A JSON object with `command` or `url`.
        entry: String,
        /// Into the file of this folder instead of your own.
        #[arg(long)]
        project: bool,
    },
    /// Add the servers of another program's file.
    #[command(
        after_help = "Example:\n  dragoman mcp import                    .mcp.json of this folder\n  dragoman mcp import --from claude\n  dragoman mcp import ~/.codex/config.toml"
    )]
    Import(ImportArguments),
    /// Remove a server from the file that holds it.
    #[command(after_help = "Example:\n  dragoman mcp remove memory")]
    Remove { name: String },
    /// Switch a server on.
    #[command(after_help = "Example:\n  dragoman mcp enable memory")]
    Enable { name: String },
    /// Switch a server off and keep its entry.
    #[command(after_help = "Example:\n  dragoman mcp disable memory")]
    Disable { name: String },
    /// Log in to a server with a browser. Opens it where $BROWSER is set; the address is printed in any case.
    #[command(
        after_help = "Example:\n  dragoman mcp login issues\n  BROWSER=firefox dragoman mcp login issues"
    )]
    Login { name: String },
    /// Delete the login of a server.
    #[command(after_help = "Example:\n  dragoman mcp logout issues")]
    Logout { name: String },
    /// Connect to one server and list its tools.
    #[command(after_help = "Exit code 1: it does not run.\n\nExample:\n  dragoman mcp test memory")]
    Test {
        name: String,
        /// For scripts.
        #[arg(long)]
        json: bool,
    },
    /// Print the document that describes this client to authorization servers; host it at the address.
    #[command(
        after_help = "Example:\n  dragoman mcp client-metadata https://me.example.com/dragoman.json > dragoman.json"
    )]
    ClientMetadata {
        /// The https address of the document; `mcpClientMetadataUrl` of the configuration by default.
        url: Option<String>,
        /// The port that the browser comes back to, as `oauthPort` of your servers.
        #[arg(long)]
        port: Option<u16>,
    },
}

impl McpTask {
    /// Whether it changes the configuration or a login.
    pub(super) fn changes_something(&self) -> bool {
        match self {
            Self::Add(_)
            | Self::AddJson { .. }
            | Self::Import(_)
            | Self::Remove { .. }
            | Self::Enable { .. }
            | Self::Disable { .. }
            | Self::Login { .. }
            | Self::Logout { .. } => true,
            Self::List { .. } | Self::Get { .. } | Self::Test { .. } | Self::ClientMetadata { .. } => false,
        }
    }
}

#[derive(Args)]
pub(crate) struct AddArguments {
    pub name: String,
    /// The address of a server over HTTP.
    #[arg(long, conflicts_with_all = ["command", "env"], required_unless_present = "command")]
    pub url: Option<String>,
    /// A variable of the program, NAME=VALUE; may be given several times. `${env:NAME}` keeps a secret out of the file.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// A header of requests to the address, `NAME: VALUE`; may be given several times.
    #[arg(long, value_name = "NAME: VALUE", requires = "url")]
    pub header: Vec<String>,
    /// A client that you registered for the login.
    #[arg(long, requires = "url")]
    pub client_id: Option<String>,
    /// The secret of that client.
    #[arg(long, requires = "client_id")]
    pub client_secret: Option<String>,
    /// The port that the browser comes back to after a login.
    #[arg(long, requires = "url")]
    pub oauth_port: Option<u16>,
    /// Into the file of this folder instead of your own.
    #[arg(long)]
    pub project: bool,
    /// The program and its arguments.
    #[arg(last = true)]
    pub command: Vec<String>,
}

impl AddArguments {
    pub(super) fn entry(self) -> Result<Value, Failure> {
        let mut entry = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                entry.insert(name.to_owned(), value);
            }
        };
        let mut command = self.command.into_iter();
        put("command", command.next().map(Value::from));
        let args: Vec<String> = command.collect();
        put("args", (!args.is_empty()).then(|| json!(args)));
        put("env", pairs(&self.env, '=', "--env takes NAME=VALUE")?);
        put("url", self.url.map(Value::from));
        put("headers", pairs(&self.header, ':', "--header takes `NAME: VALUE`")?);
        put("clientId", self.client_id.map(Value::from));
        put("clientSecret", self.client_secret.map(Value::from));
        put("oauthPort", self.oauth_port.map(Value::from));
        Ok(entry.into())
    }
}

fn pairs(written: &[String], separator: char, usage: &str) -> Result<Option<Value>, Failure> {
    let mut found = Map::new();
    for pair in written {
        let (name, value) =
            pair.split_once(separator).ok_or_else(|| Failure::user(format!("{usage}, not {pair:?}.")))?;
        found.insert(name.trim().to_owned(), value.trim().into());
    }
    Ok((!found.is_empty()).then(|| found.into()))
}

#[derive(Args)]
pub(crate) struct ImportArguments {
    /// The file; `.mcp.json` of this folder by default.
    #[arg(conflicts_with = "from")]
    pub file: Option<PathBuf>,
    /// The usual file of a program.
    #[arg(long, value_enum)]
    pub from: Option<OtherProgram>,
    /// Into the file of this folder instead of your own.
    #[arg(long)]
    pub project: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum OtherProgram {
    Claude,
    Codex,
    Cursor,
    Vscode,
}

impl ImportArguments {
    pub(super) fn file(&self, environment: &Environment) -> PathBuf {
        if let Some(file) = &self.file {
            return file.clone();
        }
        let home = environment.home();
        match self.from {
            None => PathBuf::from(".mcp.json"),
            Some(OtherProgram::Claude) => home.join(".claude.json"),
            Some(OtherProgram::Codex) => home.join(".codex/config.toml"),
            Some(OtherProgram::Cursor) => home.join(".cursor/mcp.json"),
            Some(OtherProgram::Vscode) => PathBuf::from(".vscode/mcp.json"),
        }
    }
}
