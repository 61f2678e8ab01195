//! The options of `dragoman acp` and `dragoman server` that lead to an engine on another machine.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Default)]
pub(crate) struct ConnectArguments {
    /// Use the engine of `dragoman serve` at this address: https://HOST:PORT, or http://127.0.0.1:PORT (`dragoman docs serve`).
    #[arg(long, value_name = "URL")]
    pub connect: Option<String>,
    /// Read the token for it from this file. Else DRAGOMAN_TOKEN is used, or the one that `dragoman login URL` stored.
    #[arg(long, value_name = "FILE", requires = "connect")]
    pub token_file: Option<PathBuf>,
    /// Accept the one certificate with this fingerprint, whoever signed it.
    #[arg(long, value_name = "SHA256", requires = "connect")]
    pub fingerprint: Option<String>,
}
