//! Runs the command that the command line names.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use crate::arguments::{ChatArguments, ConfigTask, DoctorTask, SpecTask};
use crate::cli::{Cli, Task};
use crate::cli_hints::find_hint;
use crate::commands::connect_arguments::ConnectArguments;
use crate::{commands, managed, output, overview};

/// A chat on a terminal; elsewhere the help.
fn default_task() -> Task {
    if std::io::stdin().is_terminal() && output::is_terminal() {
        return Task::Chat(ChatArguments::default());
    }
    Cli::command().error(ErrorKind::MissingSubcommand, "A chat needs a terminal; name a command.").exit()
}

/// The line with which editors start a server. Describing every command to the parser takes longer than the rest of
/// reading the command line.
fn plain_start() -> Option<Cli> {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let [word] = words.as_slice() else { return None };
    let command = match word.to_str()? {
        "server" => Task::Server { connect: ConnectArguments::default(), verbose: false },
        "acp" => Task::Acp { connect: ConnectArguments::default(), proxy: None, login: false },
        _ => return None,
    };
    Some(Cli { command: Some(command), log_level: None })
}

/// Prints the help that was asked for, or what is wrong with the command line.
fn refuse(error: &clap::Error) -> ExitCode {
    let printed = error.print().and_then(|()| std::io::Write::flush(&mut output::stdout()));
    if !error.use_stderr()
        && let Err(failure) = output::accept(printed)
    {
        return commands::failed(&failure);
    }
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|it| it.to_string_lossy().into_owned()).collect();
    if let Some(hint) = find_hint(&words).filter(|_| error.use_stderr()) {
        output::note(&format!("\n{hint}"));
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

pub(crate) fn run() -> ExitCode {
    if commands::update::wants_version() {
        return commands::update::print_version();
    }
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|it| it.to_string_lossy().into_owned()).collect();
    if overview::is_wanted(&words) {
        return output::print(overview::text())
            .map_or_else(|failure| commands::failed(&failure), |()| ExitCode::SUCCESS);
    }
    let cli = match plain_start().map_or_else(Cli::try_parse, Ok) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    match managed::obey(&cli) {
        Ok(()) => perform(cli),
        Err(failure) => commands::failed(&failure),
    }
}

fn perform(cli: Cli) -> ExitCode {
    let level = cli.log_level;
    match cli.command.unwrap_or_else(default_task) {
        Task::Chat(arguments) => commands::chat::run(arguments, level),
        Task::Attach(arguments) => commands::attach::run(arguments, level),
        Task::Ps { json } => commands::ps::run(json),
        Task::Chats(task) => commands::chats::run(task),
        Task::Store(task) => commands::store::run(task),
        Task::Submit(arguments) => commands::tasks::submit(&arguments),
        Task::Tasks(task) => commands::tasks::tasks(task),
        Task::Worker(arguments) => commands::tasks::worker(&arguments, level),
        Task::Replay(arguments) => commands::replay::run(&arguments),
        Task::Import(arguments) => commands::import::run(&arguments),
        Task::Stats(arguments) => commands::stats::run(arguments),
        Task::Doctor { task: Some(DoctorTask::Sandbox { json }), .. } => commands::doctor_sandbox::run(json),
        Task::Doctor { json, task: None } => commands::doctor::run(json),
        Task::Setup(arguments) => commands::setup::run(&arguments),
        Task::Update { json } => commands::update::run(json),
        Task::Docs(arguments) => commands::docs::run(&arguments),
        Task::Completions { shell } => commands::completions::run(shell),
        Task::Man { command, dir } => commands::man::run(&command, dir.as_deref()),
        Task::Server { connect, verbose } => commands::server::run(&connect, verbose, level),
        Task::Models { json, refresh, task } => commands::models::run(task, json, refresh),
        Task::Acp { login: true, .. } => commands::login::choose(),
        Task::Acp { connect, proxy, login: false } => commands::acp::run(&connect, proxy, level),
        Task::Threads(arguments) => commands::threads::run(arguments, level),
        Task::McpServer(arguments) => commands::mcp_server::run(arguments, level),
        Task::Copilot => commands::interfaces::copilot(level),
        Task::Generate(arguments) => commands::interfaces::generate(arguments),
        Task::Studio(arguments) => commands::interfaces::studio(arguments, level),
        Task::Serve(arguments) => commands::serve::run(arguments, level),
        Task::Spec(SpecTask::Check { spec, fetch_refs, json }) => {
            commands::interfaces::check(&spec, fetch_refs, json)
        }
        Task::Mcp(task) => commands::mcp::run(task),
        Task::AcpAgents(task) => commands::acp_agents::run(task),
        Task::Plugins(task) => commands::plugins::run(task),
        Task::Run(arguments) => commands::run::run(*arguments, level),
        Task::Login { provider } => commands::login::login(provider.as_deref()),
        Task::Logout { provider } => commands::login::logout(&provider),
        Task::Config(task) => configure(task),
        Task::Trust(arguments) => commands::trust::run(arguments),
        Task::ExplainPermission(arguments) => commands::explain_permission::run(&arguments),
        Task::Grants(arguments) => commands::grants::run(&arguments),
    }
}

fn configure(task: ConfigTask) -> ExitCode {
    match task {
        ConfigTask::Show { json } => commands::config::show(json),
        ConfigTask::Check { json } => commands::config::check(json),
        ConfigTask::Get { key } => commands::config_edit::get(&key),
        ConfigTask::Set { key, value, project } => commands::config_edit::set(&key, &value, project),
        ConfigTask::Edit { project } => commands::config_edit::edit(project),
        ConfigTask::Schema { markdown } => commands::config::schema(markdown),
    }
}
