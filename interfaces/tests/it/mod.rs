//! `copilot`, `generate`, `mcp-server --spec` and `spec` of the real binary. A module of the program's end-to-end tests (`crates/app/tests/it`).

mod api_server;
mod copilot;
mod copilot_host;
#[path = "../../proto-copilot/tests/it/talk.rs"]
mod copilot_talk;
mod generate;
mod generate_project;
