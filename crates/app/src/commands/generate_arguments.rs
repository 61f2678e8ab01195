//! The command line of `dragoman generate`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
pub(crate) struct GenerateArguments {
    /// OpenAPI 3, Swagger 2 or GraphQL: a file, an http(s) address, or - for stdin.
    pub spec: String,
    /// The project's folder, or the file of --single-file and --html (stdout by default).
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[arg(long, value_parser = ["light", "dark", "auto"])]
    pub theme: Option<String>,
    #[arg(long, value_parser = ["default", "cards", "compact"])]
    pub layout: Option<String>,
    /// The address of the API, before those of the specification: http(s), or a path on the page's own server.
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// The title in place of the specification's.
    #[arg(long)]
    pub title: Option<String>,
    /// A header for every request, such as "X-Tenant: 7"; may be given more than once. It is written into the
    /// interface, so it must not be a secret.
    #[arg(long, value_name = "NAME: VALUE")]
    pub header: Vec<String>,
    /// A change in plain English, such as "hide the id column"; may be given more than once. A project keeps its
    /// changes and applies them again when it is generated from a changed specification. What is not understood goes to
    /// your default model, if there is one.
    #[arg(long, value_name = "CHANGE")]
    pub ask: Vec<String>,
    /// Let your default model improve headings, names, descriptions and columns. The answer is kept: the same
    /// interface is not asked about twice.
    #[arg(long)]
    pub improve: bool,
    /// Replace generated files of a project although they were changed by hand, or the file of --single-file and --html.
    #[arg(long)]
    pub overwrite: bool,
    /// Without the sign-in panel.
    #[arg(long)]
    pub no_auth: bool,
    /// Without paging.
    #[arg(long)]
    pub no_pagination: bool,
    /// Only the JSX module.
    #[arg(long, conflicts_with = "html")]
    pub single_file: bool,
    /// One page that opens in a browser without a build.
    #[arg(long)]
    pub html: bool,
    /// Also fetch parts of the specification that are on the network.
    #[arg(long)]
    pub fetch_refs: bool,
}
