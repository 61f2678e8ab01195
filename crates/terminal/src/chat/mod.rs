//! `dragoman chat`: the loop between a terminal, the screen's state and the link.
//!
//! Decides nothing: it passes keys, events and replies to [`screen::Screen`] and performs its effects.
//! Invariants: the screen shows only data of the link; the loop never waits for a model, a tool or a query; the
//! terminal is restored however the loop ends.

mod allow_rule;
mod approval_keys;
mod asks;
mod background;
mod bindings;
mod choices;
mod color;
mod commands;
mod completion;
mod context;
mod dialog;
mod diff;
pub mod draw;
mod effect;
mod effects;
mod entry;
mod figures;
mod form;
mod growing;
mod highlight;
mod images;
mod inline;
mod input;
mod intro;
mod keys;
mod login;
mod login_entry;
mod look;
mod markdown;
mod mouse;
mod outcome;
mod page;
mod picker;
mod rewind;
mod rules;
pub mod screen;
mod selection;
mod sending;
mod status;
mod status_line;
mod steering;
mod table;
pub mod theme;
pub mod theme_file;
mod title;
mod tool;
mod transcript;
mod tty;
mod updates;
mod vi;
mod vi_motion;
mod wrap;

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use domain::command::{Catalog, SessionInfo, SessionSettings, UserPrompt, WorkspaceSpec, known_behavior};
use domain::event::Level;
use domain::frontend_link::{Pending, Then};
use domain::host::HostRequest;
use domain::link::{Commands, Engine};
use domain::store::ListFilter;
use domain::{Abilities, BoxFuture, Command, Event, Failure, Follower, SessionId};
use futures_util::StreamExt;
use ratatui::crossterm::event::{Event as TerminalEvent, EventStream, KeyEventKind};
use tokio::sync::mpsc;

pub use allow_rule::{AllowRule, ExplainedCall, ProjectRules};
pub use background::is_background_light;
pub use bindings::Bindings;
pub use color::ColorDepth;
pub use intro::Intro;
use look::Look;
use screen::{Effect, Screen, Update};
pub use status_line::StatusLine;
use theme::Theme;
pub use tty::Notify;
use tty::Tty;

/// The time between two frames.
const FRAME_INTERVAL: Duration = Duration::from_millis(16);
/// The time between two frames while the journal is read.
const REPLAY_FRAME_INTERVAL: Duration = Duration::from_millis(250);

pub struct ChatOptions {
    /// The folders to work in, the current one first.
    pub roots: Vec<PathBuf>,
    pub model: Option<String>,
    pub behavior: Option<String>,
    pub session: Option<SessionId>,
    /// Continue the newest chat of the workspace.
    pub newest: bool,
    /// The first prompt, sent at once.
    pub prompt: Option<String>,
    pub theme: Theme,
    /// The themes to choose from.
    pub themes: Vec<(String, Theme)>,
    /// Says how the last line looks.
    pub status_line: Option<StatusLine>,
    /// Nothing moves by itself.
    pub reduced_motion: bool,
    /// Text for a screen reader: no frames and no bars.
    pub screen_reader: bool,
    /// The terminal shows progress beside its title (OSC 9;4).
    pub shows_progress: bool,
    pub notify: Notify,
    pub effort: Option<String>,
    pub keys: Bindings,
    /// The input is edited with vi's keys.
    pub vi_mode: bool,
    /// The chat is drawn at the end of the terminal's own text instead of on a screen of its own.
    pub inline: bool,
    /// The terminal reports the mouse: the wheel scrolls the chat, a click opens a folded entry.
    pub mouse: bool,
}

/// Finds the files that a text names.
type FindMentioned = dyn Fn(&str) -> Vec<domain::command::Context> + Send + Sync;

/// Explains the decision about a call: its tool, its input, and the state of the chat that counts.
type ExplainCall = dyn Fn(ExplainedCall) -> BoxFuture<'static, Result<Vec<String>, Failure>> + Send + Sync;

/// Runs a command with a text on its input; returns its output.
type RunStatus = dyn Fn(String, String) -> BoxFuture<'static, Result<String, Failure>> + Send + Sync;

/// Finds the folder that a text names.
type FindFolder = dyn Fn(&str) -> Result<PathBuf, Failure> + Send + Sync;

/// Writes the setting at these keys; returns the file.
type SaveSetting = dyn Fn(&[&str], serde_json::Value) -> Result<String, Failure> + Send + Sync;

/// Services of the process that the link does not offer.
pub struct TerminalServices {
    /// Opens the text in the user's editor, which owns the terminal meanwhile.
    pub edit: Box<dyn Fn(String) -> BoxFuture<'static, Result<String, Failure>> + Send + Sync>,
    /// Runs a command in the user's shell; returns its output with the exit code.
    pub shell: Box<dyn Fn(String) -> BoxFuture<'static, Result<String, Failure>> + Send + Sync>,
    /// The facts of the first screen, as they are now.
    pub intro: Box<dyn Fn() -> Intro + Send + Sync>,
    /// Adds a line to the project's file with instructions; returns the path.
    pub add_instruction: Box<dyn Fn(String) -> Result<String, Failure> + Send + Sync>,
    /// Writes a new file; returns its path.
    pub export: Box<dyn Fn(String, String) -> Result<String, Failure> + Send + Sync>,
    /// Reads an image file.
    pub image: Box<dyn Fn(PathBuf) -> Result<domain::command::Context, Failure> + Send + Sync>,
    /// The files and folders of the workspace that `@path` in a text names.
    pub mentioned: Box<FindMentioned>,
    /// Reads the image in the clipboard.
    pub clipboard_image:
        Box<dyn Fn() -> BoxFuture<'static, Result<domain::command::Context, Failure>> + Send + Sync>,
    /// Says how a call is decided and by which rule.
    pub explain: Box<ExplainCall>,
    /// Runs the command of the status line with the values as JSON on its input; returns its output.
    pub status: Box<RunStatus>,
    /// Notifies the user by other programs, where the settings name some.
    pub notify: Box<dyn Fn(&'static str) + Send + Sync>,
    /// The folder that a text names, if there is one.
    pub folder: Box<FindFolder>,
    /// Writes a setting into the user's own file; returns the file.
    pub save_setting: Box<SaveSetting>,
    /// The user's approval rules.
    pub rules: Box<dyn ProjectRules>,
    /// Stops this process until the shell continues it.
    pub suspend: Box<dyn Fn() + Send + Sync>,
}

/// Runs until the user leaves; returns the chat that was open, if any.
pub async fn chat(
    engine: Engine,
    options: ChatOptions,
    services: TerminalServices,
) -> Result<Option<SessionId>, Failure> {
    let mut chat_loop = ChatLoop::begin(engine, options, services).await?;
    let ended = chat_loop.run().await;
    chat_loop.tty.leave();
    let session = chat_loop.screen.session.clone();
    let _ = chat_loop.commands.send(Command::Detach).await;
    ended.map(|()| session).map_err(|error| Failure::internal(format!("The terminal is gone: {error}.")))
}

struct ChatLoop {
    screen: Screen,
    tty: Tty,
    keys: Option<EventStream>,
    commands: Commands,
    follower: Follower,
    host: mpsc::Receiver<HostRequest>,
    pending: Pending<ChatLoop>,
    /// Commands in order; sent at the end of each round.
    outbox: Vec<Command>,
    services: TerminalServices,
    shows_progress: bool,
    /// The command of the status line runs; these values wait for their turn.
    status_runs: bool,
    status_waits: Option<(String, String)>,
    drawn: Instant,
    dirty: bool,
    is_over: bool,
}

enum LoopEvent {
    Key(Option<std::io::Result<TerminalEvent>>),
    Reply(Then<ChatLoop>),
    Host(HostRequest),
    Event(Option<Event>),
    Frame,
    Woke,
}

impl ChatLoop {
    async fn begin(
        engine: Engine,
        mut options: ChatOptions,
        services: TerminalServices,
    ) -> Result<Self, Failure> {
        let link = engine.attach(abilities()).await?;
        let (commands, roots) = (link.commands, std::mem::take(&mut options.roots));
        let workspace = WorkspaceSpec { roots: roots.clone(), options: None };
        let catalog = commands.call(|reply| Command::Enter { workspace, reply }).await?;
        options.behavior.as_deref().map_or(Ok(()), |name| known_behavior(name, &catalog.behaviors))?;
        let session = match options.session.take() {
            None if options.newest => newest(&commands, &roots).await?,
            session => session,
        };
        let loaded = match session {
            Some(session) => Some(load(&commands, session).await?),
            None => None,
        };
        let tty = Tty::take(options.inline, options.mouse, options.notify.by.clone()).map_err(|error| {
            Failure::user(format!("Dragoman cannot draw on this terminal: {error}."))
                .hint("`dragoman run` works without a terminal.")
        })?;
        let settings = SessionSettings {
            model: options.model.take(),
            behavior: options.behavior.take(),
            variant: options.effort.take(),
            ..SessionSettings::default()
        };
        let (prompt, shows_progress) = (options.prompt.take(), options.shows_progress);
        let screen = open_screen(options, roots, settings.clone(), catalog, &services);
        let mut chat_loop = Self {
            screen,
            tty,
            keys: Some(EventStream::new()),
            follower: Follower::new(commands.clone(), link.events),
            commands,
            host: link.host,
            pending: Pending::default(),
            outbox: Vec::new(),
            services,
            shows_progress,
            status_runs: false,
            status_waits: None,
            drawn: Instant::now().checked_sub(REPLAY_FRAME_INTERVAL).unwrap_or_else(Instant::now),
            dirty: true,
            is_over: false,
        };
        chat_loop.apply_arguments(loaded, settings, prompt).await;
        Ok(chat_loop)
    }

    /// Applies the arguments of the command line.
    async fn apply_arguments(
        &mut self,
        loaded: Option<SessionInfo>,
        settings: SessionSettings,
        prompt: Option<String>,
    ) {
        if let Some(info) = loaded {
            // The first screen, which shows notices, is not visible here.
            let notices = &self.screen.catalog.notices;
            if let Some(text) = notices.iter().find(|it| it.level != Level::Info).map(|it| it.text.clone()) {
                self.screen.flash(text);
            }
            self.show(info);
            if !settings.is_empty() {
                self.perform(Effect::Configure(settings)).await;
            }
        }
        if let Some(text) = prompt {
            let written = text.clone();
            self.prompt_with_files(UserPrompt { text, ..UserPrompt::default() }, &written);
        }
    }

    async fn run(&mut self) -> std::io::Result<()> {
        while !self.is_over {
            let event = self.wait().await;
            self.screen.now = Instant::now();
            self.screen.clock = clock();
            self.dirty = true;
            match event {
                LoopEvent::Key(None) => return Ok(()),
                LoopEvent::Key(Some(key)) => self.handle_terminal_event(key?),
                LoopEvent::Reply(then) => then(self),
                LoopEvent::Host(request) => {
                    let _ =
                        request.reply.send(Err(Failure::user("The terminal does not support this request.")));
                }
                LoopEvent::Event(None) => return Ok(()),
                LoopEvent::Event(Some(event)) => self.screen.handle_event(&event),
                LoopEvent::Woke => {}
                LoopEvent::Frame => self.draw()?,
            }
            if self.follower.is_caught_up() {
                self.screen.finish_replay();
            }
            for effect in self.screen.take_effects() {
                self.perform(effect).await;
            }
            for command in self.outbox.drain(..) {
                let _ = self.commands.send(command).await;
            }
        }
        Ok(())
    }

    fn draw(&mut self) -> std::io::Result<()> {
        self.tty.draw(&mut self.screen, self.follower.is_caught_up())?;
        self.tty.set_title(self.screen.window_title())?;
        if self.shows_progress {
            self.tty.show_progress(self.screen.progress_state())?;
        }
        self.drawn = Instant::now();
        self.dirty = false;
        Ok(())
    }

    async fn wait(&mut self) -> LoopEvent {
        let pause = if self.follower.is_caught_up() { FRAME_INTERVAL } else { REPLAY_FRAME_INTERVAL };
        let frame = (self.drawn + pause).into();
        let wakes = self.screen.next_wake();
        let Self { keys, pending, host, follower, dirty, .. } = self;
        tokio::select! {
            biased;
            key = next_key(keys) => LoopEvent::Key(key),
            () = tokio::time::sleep_until(frame), if *dirty => LoopEvent::Frame,
            Some(then) = pending.next(), if !pending.is_empty() => LoopEvent::Reply(then),
            Some(request) = host.recv() => LoopEvent::Host(request),
            event = follower.next() => LoopEvent::Event(event),
            () = sleep_until(wakes) => LoopEvent::Woke,
        }
    }

    fn handle_terminal_event(&mut self, event: TerminalEvent) {
        match event {
            TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => self.screen.handle_key(key),
            TerminalEvent::Paste(text) => self.screen.handle_paste(&text),
            TerminalEvent::FocusGained => self.screen.focused = Some(true),
            TerminalEvent::FocusLost => self.screen.focused = Some(false),
            TerminalEvent::Mouse(mouse) => self.screen.handle_mouse(mouse),
            TerminalEvent::Key(_) | TerminalEvent::Resize(..) => {}
        }
    }

    fn show_or_report(&mut self, info: Result<SessionInfo, Failure>) {
        match info {
            Ok(info) => self.show(info),
            Err(failure) => self.screen.apply_update(Update::Failed(failure)),
        }
    }

    /// Shows this chat from its first fact on.
    fn show(&mut self, info: SessionInfo) {
        if self.screen.session.as_ref() != Some(&info.id) {
            self.close_current_session();
        }
        let session = info.id.clone();
        self.screen.apply_update(Update::Opened(Box::new(info)));
        self.follower.follow(session, 0);
    }

    /// Closes the chat that the screen shows.
    fn close_current_session(&mut self) {
        if let Some(session) = self.screen.session.clone() {
            self.follower.forget(&session);
            self.call(|reply| Command::Close { session, reply }, |_, _| {});
        }
    }

    fn send_to_session(&mut self, make: impl FnOnce(SessionId) -> Command) {
        self.outbox.extend(self.screen.session.clone().map(make));
    }

    /// Sends a command to the open chat; the screen shows only its failure.
    fn call_session<T: Send + 'static>(&mut self, make: impl FnOnce(SessionId, domain::Reply<T>) -> Command) {
        let Some(session) = self.screen.session.clone() else { return };
        self.call(
            |reply| make(session, reply),
            |chat_loop, done| {
                if let Err(failure) = done {
                    chat_loop.screen.apply_update(Update::Failed(failure));
                }
            },
        );
    }

    /// Queues a command; `then` receives its reply on this task.
    fn call<T: Send + 'static>(
        &mut self,
        make: impl FnOnce(domain::Reply<T>) -> Command,
        then: impl FnOnce(&mut ChatLoop, Result<T, Failure>) + Send + 'static,
    ) {
        let (reply, answer) = domain::command::reply();
        self.outbox.push(make(reply));
        self.pending.later(answer, then);
    }
}

/// The screen before anything was said.
fn open_screen(
    options: ChatOptions,
    roots: Vec<PathBuf>,
    settings: SessionSettings,
    catalog: Catalog,
    services: &TerminalServices,
) -> Screen {
    let mut screen = Screen::new(options.theme, roots, settings, Instant::now(), clock());
    (screen.intro, screen.bindings, screen.vi.is_on) = ((services.intro)(), options.keys, options.vi_mode);
    screen.look = Look {
        themes: options.themes,
        has_header: !options.inline,
        is_calm: options.reduced_motion || options.screen_reader,
        is_linear: options.screen_reader,
        status_line: options.status_line,
        status_output: String::new(),
        notifies_always: options.notify.always,
    };
    screen.apply_update(Update::Catalog(catalog));
    screen.request_servers();
    screen.request_status();
    screen
}

fn abilities() -> Abilities {
    Abilities {
        client: "terminal".into(),
        approvals: true,
        questions: true,
        forms: true,
        ..Abilities::default()
    }
}

async fn load(commands: &Commands, session: SessionId) -> Result<SessionInfo, Failure> {
    commands.call(|reply| Command::Load { session, servers: Vec::new(), reply }).await
}

async fn newest(commands: &Commands, roots: &[PathBuf]) -> Result<Option<SessionId>, Failure> {
    let filter = ListFilter { workspace: Some(roots.to_vec()), limit: Some(1), ..ListFilter::default() };
    let chats = commands.call(|reply| Command::List { filter, reply }).await?;
    Ok(chats.into_iter().next().map(|chat| chat.id))
}

async fn next_key(keys: &mut Option<EventStream>) -> Option<std::io::Result<TerminalEvent>> {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

fn clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
