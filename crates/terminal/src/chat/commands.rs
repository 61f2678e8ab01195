//! Commands that the terminal runs itself: `/name`, `!command` and `#note`.

use domain::command::{Context, known_behavior};
use domain::event::{Level, SessionUsage};
use domain::slash_commands::{self, CommandGroup, CommandPlace, SLASH_COMMANDS};
use domain::tool::{ServerAction, ServerStatus, ToolServer};
use domain::tool_call::Origin;

use super::figures::{money, short};
use super::keys::KEY_HELP;
use super::page::{Page, PageLine};
use super::picker::{Choice, Picker};
use super::screen::{Effect, Overlay, Screen};
use crate::text::clean_line;

/// Commands of the terminal with words after them.
const TAKES_WORDS: [&str; 11] =
    ["model", "effort", "behavior", "export", "mcp", "review", "copy", "theme", "statusline", "vim", "find"];

const MCP_USAGE: &str = "Usage: /mcp start|stop|login|logout|enable|disable|remove SERVER";

impl Screen {
    /// Whether the terminal carries out `/name rest`; the engine takes the others.
    pub(super) fn is_terminal_command(&self, name: &str, rest: &str) -> bool {
        if name == "panic" {
            return rest.is_empty();
        }
        let is_own = slash_commands::by_name(name).is_some_and(|command| command.is_of_terminal());
        is_own
            && match (name, rest.trim()) {
                // Without a provider the engine lists them.
                ("login" | "logout" | "add-dir" | "find", words) => !words.is_empty(),
                (_, "") => true,
                (name, _) => TAKES_WORDS.contains(&name),
            }
    }

    /// Runs `/name rest`.
    pub(super) fn run_command(&mut self, name: &str, rest: &str) {
        let switches = matches!(name, "chats" | "resume" | "new" | "clear" | "fork");
        if switches && self.busy.is_some() {
            return self.flash("An answer is running. Stop it first (Esc).");
        }
        match (name, rest) {
            ("chats" | "resume", _) => self.push_effect(Effect::ListChats),
            ("new" | "clear", _) => self.push_effect(Effect::New),
            ("fork", _) if self.session.is_none() => self.flash("There is nothing to fork yet."),
            ("fork", _) => self.overlay = Some(Overlay::Picker(Picker::forks(&self.transcript))),
            ("model", "") => {
                let models = self.catalog.models.iter().map(|model| model.id.clone());
                self.overlay = Some(Overlay::Picker(Picker::models(models, self.model())));
            }
            ("model", model) => self.choose(Choice::Model(model.to_owned())),
            ("behavior", "") => {
                let picker = Picker::behaviors(&self.catalog.behaviors, Some(self.behavior()));
                self.overlay = Some(Overlay::Picker(picker));
            }
            ("behavior", behavior) => match known_behavior(behavior, &self.catalog.behaviors) {
                Ok(()) => self.choose(Choice::Behavior(behavior.to_owned())),
                Err(failure) => self.flash(failure.to_string()),
            },
            ("effort", wanted) => self.choose_effort(wanted),
            ("editor", _) => self.push_effect(Effect::Edit(String::new())),
            ("stop", _) if self.busy.is_some() => self.push_effect(Effect::Cancel),
            ("quit" | "exit", _) => self.push_effect(Effect::Leave),
            ("copy", number) => self.copy_answer(number),
            ("rewind", _) => self.open_rewind(),
            ("find", words) => self.find_in_chat(words),
            ("theme", name) => self.choose_theme(name),
            ("vim", _) => self.toggle_vi(),
            ("statusline", wanted) => self.change_status_line(wanted),
            ("logout", provider) => self.push_effect(Effect::Logout(provider.to_owned())),
            ("add-dir", folder) => self.push_effect(Effect::AddFolder(folder.to_owned())),
            ("export", path) => self.export(path),
            ("mcp", words) if !words.trim().is_empty() => self.act_on_server(words.trim()),
            ("login", words) => self.log_in(words),
            ("diff", _) => self.push_effect(Effect::Diff),
            ("permissions", _) => self.push_effect(Effect::Permissions),
            ("review", since) => self.prompt(review_prompt(since)),
            // A test checks that the terminal is restored after a panic.
            #[cfg(debug_assertions)]
            ("panic", _) => panic!("asked for by /panic"),
            (name, _) => self.open_page(name),
        }
    }

    /// Shows the problem of each server once, until it is another one.
    pub(super) fn update_servers(&mut self, servers: Vec<ToolServer>) {
        for server in &servers {
            let before = self.servers.iter().find(|known| known.name == server.name);
            let problem = server.problem();
            if problem != before.and_then(ToolServer::problem)
                && let Some(problem) = problem
            {
                self.transcript.add_notice(Level::Warning, problem);
            }
        }
        self.servers = servers;
    }

    /// `/mcp ACTION SERVER`.
    fn act_on_server(&mut self, words: &str) {
        let (action, name) = words.split_once(' ').unwrap_or((words, ""));
        let action = match action {
            "start" => ServerAction::Start,
            "stop" => ServerAction::Stop,
            "login" => ServerAction::Login,
            "logout" => ServerAction::Logout,
            "enable" => ServerAction::Enable,
            "disable" => ServerAction::Disable,
            "remove" => ServerAction::Remove,
            _ => return self.flash(MCP_USAGE),
        };
        match name.trim() {
            "" => self.flash(MCP_USAGE),
            name => self.push_effect(Effect::ServerAction { name: name.to_owned(), action }),
        }
    }

    /// The commands that show a page.
    fn open_page(&mut self, name: &str) {
        let page = match name {
            "help" => help(),
            "status" => self.status_page(),
            "usage" => self.usage_page(),
            "context" => super::context::page(&self.transcript, &self.usage),
            "mcp" => servers_page(&self.servers),
            _ => return,
        };
        self.overlay = Some(Overlay::Page(page));
    }

    /// `!command`: runs it in the user's shell; the next prompt takes its output along.
    pub(super) fn run_shell_command(&mut self, command: &str) {
        if command.is_empty() {
            return self.flash("Type a command after the exclamation mark.");
        }
        self.flash(format!("Running {command} …"));
        self.push_effect(Effect::Shell(command.to_owned()));
    }

    /// The output of `!command` appears in the chat and belongs to the next prompt.
    pub(super) fn add_shell_output(&mut self, command: &str, output: String) {
        self.end_flash();
        self.transcript.add_output(format!("$ {command}"), output.clone());
        let name = format!("output of `{command}`, which the user ran");
        self.next_contexts.push(Context::Text { name, text: output });
    }

    /// `#note`: adds a line to the project's file with instructions.
    pub(super) fn add_instruction(&mut self, note: &str) {
        if note.is_empty() {
            return self.flash("Type an instruction after the number sign.");
        }
        self.push_effect(Effect::AddInstruction(note.to_owned()));
    }

    fn export(&mut self, path: &str) {
        let text = self.transcript.markdown();
        if text.is_empty() {
            return self.flash("There is nothing to export yet.");
        }
        let path = if path.is_empty() { "dragoman-chat.md" } else { path };
        self.push_effect(Effect::Export { path: path.to_owned(), text });
    }

    fn status_page(&self) -> Page {
        let pair = |name: &str, value: String| PageLine::Pair(name.to_owned(), value);
        let mut lines = vec![
            pair("Version", self.intro.version.clone()),
            pair("Folder", self.intro.folders.join(", ")),
            pair("Branch", self.intro.branch.clone().unwrap_or_else(|| "no repository".to_owned())),
            pair("Model", self.model().unwrap_or("none").to_owned()),
            pair("Behavior", self.behavior().to_owned()),
            pair("Chat", self.session.as_ref().map_or("not started".to_owned(), ToString::to_string)),
            pair("Text of strangers", list_or_none(self.taint.sources())),
            pair("Secrets read", list_or_none(self.taint.secrets())),
            pair("Instructions", list_or_none(&self.intro.instructions)),
        ];
        lines.extend(self.intro.places.iter().map(|line| pair("Counts", line.clone())));
        lines.extend(self.intro.left_out.iter().map(|line| pair("Does not count", line.clone())));
        lines.extend(mcp_servers(&self.servers).map(|server| pair("MCP server", server_line(server))));
        lines.extend(self.catalog.notices.iter().map(|notice| pair("Notice", notice.text.clone())));
        Page::new("Status", lines)
    }

    fn usage_page(&self) -> Page {
        Page::new("Usage of this chat", usage_lines(&self.usage))
    }

    pub(super) fn show_permissions(&mut self, lines: Vec<String>) {
        let lines = lines.into_iter().map(PageLine::Text).collect();
        self.overlay = Some(Overlay::Page(Page::new("Permissions", lines)));
    }

    /// A notice in the chat.
    pub(super) fn add_info(&mut self, text: impl Into<String>) {
        self.transcript.add_notice(Level::Info, text);
    }
}

/// The prompt of `/review`, with the point to compare with where one was named.
fn review_prompt(since: &str) -> String {
    let subject = match since {
        "" => "the uncommitted changes of this repository (`git diff HEAD`, and untracked files)".to_owned(),
        since => format!("the changes since `{since}` (`git diff {since}`)"),
    };
    format!(
        "Review {subject}. Read the surrounding code where it matters. Report only problems that you can show: bugs, lost \
         error handling, security holes, missing tests. Give each as `file:line`, what goes wrong and how to fix it, the \
         worst first. Change nothing. If there is no problem, say so in one sentence."
    )
}

pub(super) fn help() -> Page {
    let mut lines = vec![PageLine::Heading("Keys".to_owned())];
    let pair = |(name, meaning): (&str, &str)| PageLine::Pair(name.to_owned(), meaning.to_owned());
    lines.extend(KEY_HELP.into_iter().map(pair));
    for group in CommandGroup::ALL {
        lines.push(PageLine::Heading(group.title().to_owned()));
        let listed =
            SLASH_COMMANDS.iter().filter(|it| it.group == group && it.place != CommandPlace::Unlisted);
        lines.extend(listed.map(|command| {
            let others: Vec<String> = command.aliases.iter().map(|alias| format!("/{alias}")).collect();
            let others =
                if others.is_empty() { String::new() } else { format!(" (also {})", others.join(", ")) };
            PageLine::Pair(format!("/{}", command.name), format!("{}{others}", command.description))
        }));
    }
    Page::new("Help", lines)
}

fn servers_page(servers: &[ToolServer]) -> Page {
    let mut lines: Vec<PageLine> = Vec::new();
    if mcp_servers(servers).next().is_none() {
        lines
            .push(PageLine::Text("No MCP server is configured. Add one: dragoman mcp add --help".to_owned()));
    }
    for server in servers {
        lines.push(PageLine::Heading(server_line(server)));
        lines.extend(server.error.iter().map(|error| PageLine::Text(error.clone())));
        let tools = server.tools.iter();
        lines.extend(
            tools.map(|tool| PageLine::Pair(format!("  {}", tool.name), clean_line(&tool.description))),
        );
    }
    Page::new("MCP servers", lines)
}

/// The servers without the built-in tools, which front-ends list as a server too.
pub(super) fn mcp_servers(servers: &[ToolServer]) -> impl Iterator<Item = &ToolServer> {
    servers.iter().filter(|server| server.origin == Origin::Mcp)
}

pub(super) fn server_line(server: &ToolServer) -> String {
    let count = server.tools.len();
    let tools = if count == 1 { "1 tool".to_owned() } else { format!("{count} tools") };
    if server.origin == Origin::Native {
        return format!("Built in ({tools})");
    }
    let status = match server.status {
        ServerStatus::Starting => "starting",
        ServerStatus::Running => "running",
        ServerStatus::Stopping => "stopping",
        ServerStatus::Stopped => "stopped",
        ServerStatus::Failed => "failed",
        ServerStatus::Disabled => "disabled",
        ServerStatus::RequiresAuth => "needs a login",
    };
    format!("{} ({status}, {tools})", clean_line(&server.name))
}

fn usage_lines(usage: &SessionUsage) -> Vec<PageLine> {
    let pair = |name: &str, value: String| PageLine::Pair(name.to_owned(), value);
    let tokens = |tokens: &domain::model::Tokens| {
        format!(
            "{} new, {} from the cache, {} to the cache, {} answered",
            short(tokens.input),
            short(tokens.cache_read),
            short(tokens.cache_write),
            short(tokens.output)
        )
    };
    let limit = usage.context_limit.map_or("unknown".to_owned(), short);
    let mut lines = vec![
        pair("Context", format!("{} of {limit} tokens", short(usage.last.all()))),
        pair("Last request", tokens(&usage.last)),
        pair("All requests", tokens(&usage.total)),
        pair("Cost", usage.session_cost.map_or("no price is known".to_owned(), money)),
    ];
    for spent in &usage.spent {
        let calls =
            if spent.calls == 1 { "1 request".to_owned() } else { format!("{} requests", spent.calls) };
        let cost = spent.cost.map(|cost| format!(", {}", money(cost))).unwrap_or_default();
        lines.push(pair(
            &format!("{} ({})", clean_line(&spent.purpose), clean_line(&spent.model)),
            format!("{calls}, {} tokens{cost}", short(spent.tokens.all())),
        ));
    }
    lines.extend(usage.breaks.iter().map(|it| {
        pair("Cache break", format!("{}: {} tokens read again", clean_line(&it.reason), short(it.tokens)))
    }));
    lines
}

pub(super) fn list_or_none(list: &[String]) -> String {
    if list.is_empty() { "none".to_owned() } else { list.join(", ") }
}
