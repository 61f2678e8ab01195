//! `dragoman chat`: the loop between a terminal, the screen's state and the link.
//!
//! Owns no decision: keys, events and replies go into [`screen::Screen`], what it wants done is done here.
//! Invariants: nothing that is shown comes from elsewhere than the link; the loop never waits for a model, a tool or a
//! query; the terminal is given back however the loop ends.

mod asks;
mod completion;
mod diff;
pub mod draw;
mod entry;
mod form;
mod highlight;
mod input;
mod keys;
mod markdown;
mod picker;
pub mod screen;
mod status;
mod table;
pub mod theme;
mod tool;
mod transcript;
mod tty;
mod wrap;

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use domain::command::{
    ContextQuery, SessionInfo, SessionSettings, UserPrompt, WorkspaceSpec, known_behavior,
};
use domain::event::Level;
use domain::frontend_link::{Pending, Then};
use domain::host::HostRequest;
use domain::link::{Commands, Engine};
use domain::store::ListFilter;
use domain::{Abilities, BoxFuture, Command, Event, Failure, Follower, SessionId};
use futures_util::StreamExt;
use ratatui::crossterm::event::{Event as TerminalEvent, EventStream, KeyEventKind};
use tokio::sync::mpsc;

use screen::{Effect, Screen, Update};
use theme::{Palette, Theme};
use tty::Tty;

/// Between two frames.
const FRAME: Duration = Duration::from_millis(16);
/// A chat that is being read from the journal is drawn this often.
const READING: Duration = Duration::from_millis(250);
/// Chats in the list.
const LISTED: usize = 200;

pub struct ChatOptions {
    pub workspace: PathBuf,
    pub model: Option<String>,
    pub behavior: Option<String>,
    pub session: Option<SessionId>,
    /// Go on with the newest chat of the workspace.
    pub newest: bool,
    /// Asked at once.
    pub prompt: Option<String>,
    pub palette: Palette,
}

/// What the terminal cannot do by the link.
pub struct TerminalServices {
    /// Has a text written in the user's editor, which has the terminal meanwhile.
    pub edit: Box<dyn Fn(String) -> BoxFuture<'static, Result<String, Failure>> + Send + Sync>,
    /// Stops this process until the shell brings it back.
    pub suspend: Box<dyn Fn() + Send + Sync>,
}

/// Runs until the user leaves; tells the chat that was open, where one was.
pub async fn chat(
    engine: Engine,
    options: ChatOptions,
    outside: TerminalServices,
) -> Result<Option<SessionId>, Failure> {
    let mut face = ChatLoop::begin(engine, options, outside).await?;
    let ended = face.run().await;
    face.tty.leave();
    let session = face.screen.session.clone();
    let _ = face.commands.send(Command::Detach).await;
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
    /// In order; sent at the end of each round.
    outbox: Vec<Command>,
    outside: TerminalServices,
    drawn: Instant,
    dirty: bool,
    over: bool,
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
    async fn begin(engine: Engine, options: ChatOptions, outside: TerminalServices) -> Result<Self, Failure> {
        let link = engine.attach(abilities()).await?;
        let (commands, roots) = (link.commands, vec![options.workspace]);
        let workspace = WorkspaceSpec { roots: roots.clone(), options: None };
        let catalog = commands.call(|reply| Command::Enter { workspace, reply }).await?;
        options.behavior.as_deref().map_or(Ok(()), |name| known_behavior(name, &catalog.behaviors))?;
        let session = match options.session {
            None if options.newest => newest(&commands, &roots).await?,
            session => session,
        };
        let loaded = match session {
            Some(session) => Some(load(&commands, session).await?),
            None => None,
        };
        let tty = Tty::take().map_err(|error| {
            Failure::user(format!("This is not a terminal that can be drawn on: {error}."))
                .hint("`dragoman run` needs none.")
        })?;
        let settings = SessionSettings {
            model: options.model,
            behavior: options.behavior,
            ..SessionSettings::default()
        };
        let theme = Theme::new(options.palette);
        let mut screen = Screen::new(theme, roots, settings.clone(), Instant::now(), clock());
        screen.update(Update::Catalog(catalog));
        let mut face = Self {
            screen,
            tty,
            keys: Some(EventStream::new()),
            follower: Follower::new(commands.clone(), link.events),
            commands,
            host: link.host,
            pending: Pending::default(),
            outbox: Vec::new(),
            outside,
            drawn: Instant::now().checked_sub(READING).unwrap_or_else(Instant::now),
            dirty: true,
            over: false,
        };
        face.first(loaded, settings, options.prompt).await;
        Ok(face)
    }

    /// What was asked for on the command line.
    async fn first(
        &mut self,
        loaded: Option<SessionInfo>,
        settings: SessionSettings,
        prompt: Option<String>,
    ) {
        if let Some(info) = loaded {
            // The page that shows them otherwise is not seen.
            let notices = &self.screen.catalog.notices;
            if let Some(text) = notices.iter().find(|it| it.level != Level::Info).map(|it| it.text.clone()) {
                self.screen.flash(text);
            }
            self.show(info);
            if !settings.is_empty() {
                self.carry_out(Effect::Configure(settings)).await;
            }
        }
        if let Some(text) = prompt {
            self.carry_out(Effect::Prompt(Box::new(UserPrompt { text, ..UserPrompt::default() }))).await;
        }
    }

    async fn run(&mut self) -> std::io::Result<()> {
        while !self.over {
            let happened = self.wait().await;
            self.screen.now = Instant::now();
            self.screen.clock = clock();
            self.dirty = true;
            match happened {
                LoopEvent::Key(None) => return Ok(()),
                LoopEvent::Key(Some(key)) => self.key(key?),
                LoopEvent::Reply(then) => then(self),
                LoopEvent::Host(request) => {
                    let _ = request.reply.send(Err(Failure::user("A terminal cannot do that.")));
                }
                LoopEvent::Event(None) => return Ok(()),
                LoopEvent::Event(Some(event)) => self.screen.happened(&event),
                LoopEvent::Woke => {}
                LoopEvent::Frame => self.draw()?,
            }
            if self.follower.is_caught_up() {
                self.screen.caught_up();
            }
            for effect in self.screen.take_deeds() {
                self.carry_out(effect).await;
            }
            for command in self.outbox.drain(..) {
                let _ = self.commands.send(command).await;
            }
        }
        Ok(())
    }

    fn draw(&mut self) -> std::io::Result<()> {
        self.tty.draw(&mut self.screen)?;
        self.drawn = Instant::now();
        self.dirty = false;
        Ok(())
    }

    async fn wait(&mut self) -> LoopEvent {
        let pause = if self.follower.is_caught_up() { FRAME } else { READING };
        let frame = (self.drawn + pause).into();
        let wakes = self.screen.wakes_at();
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

    fn key(&mut self, event: TerminalEvent) {
        match event {
            TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => self.screen.key(key),
            TerminalEvent::Paste(text) => self.screen.paste(&text),
            _ => {}
        }
    }

    async fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Prompt(prompt) => self.prompt(*prompt),
            Effect::Steer(text) => self.steer(text),
            Effect::TakeBack => {
                self.on_chat(|session, reply| Command::Steer { session, text: None, reply });
            }
            Effect::Cancel => self.tell(|session| Command::Cancel { session }),
            Effect::Answer { ask, answer } => {
                self.tell(|session| Command::Answer { session, ask, answer });
            }
            Effect::Configure(change) => {
                self.on_chat(|session, reply| Command::Configure { session: Some(session), change, reply });
            }
            Effect::Load(session) => {
                self.ask(|reply| Command::Load { session, servers: Vec::new(), reply }, Self::show_or_say);
            }
            Effect::Fork(until) => {
                let Some(session) = self.screen.session.clone() else { return };
                self.ask(|reply| Command::Fork { session, until, reply }, Self::show_or_say);
            }
            Effect::New => {
                self.let_go();
                self.screen.start_anew();
            }
            Effect::ListChats => self.list(),
            Effect::Commands { query } => self.look_up_commands(query),
            Effect::Contexts { query } => self.look_up_contexts(query),
            Effect::Catalog => self.ask(
                |reply| Command::Catalog { reply },
                |face, catalog| match catalog {
                    Ok(catalog) => face.screen.update(Update::Catalog(catalog)),
                    Err(failure) => face.screen.update(Update::Failed(failure)),
                },
            ),
            Effect::Edit(text) => self.edit(text).await,
            Effect::Suspend => self.suspend(),
            Effect::Leave => self.over = true,
        }
    }

    fn prompt(&mut self, prompt: UserPrompt) {
        let text = prompt.text.clone();
        let not_sent = |text: String| {
            move |face: &mut ChatLoop, failure: Failure| face.screen.update(Update::NotSent(text, failure))
        };
        if let Some(session) = self.screen.session.clone() {
            return self.ask(
                |reply| Command::Prompt { session, prompt, reply },
                move |face, accepted| match accepted {
                    Ok(_) => face.screen.update(Update::Sent),
                    Err(failure) => not_sent(text)(face, failure),
                },
            );
        }
        let settings = self.screen.settings.clone();
        self.ask(
            |reply| Command::Open { id: None, workspace: None, settings, servers: Vec::new(), reply },
            move |face, opened| match opened {
                Ok(info) => {
                    face.show(info);
                    face.prompt(prompt);
                }
                Err(failure) => not_sent(text)(face, failure),
            },
        );
    }

    fn steer(&mut self, text: String) {
        let Some(session) = self.screen.session.clone() else { return };
        let said = text.clone();
        self.ask(
            |reply| Command::Steer { session, text: Some(said), reply },
            move |face, steered| {
                if steered.is_err() {
                    face.screen.update(Update::NotSteered(text));
                }
            },
        );
    }

    fn list(&mut self) {
        let workspace = Some(self.screen.roots.clone());
        let filter = ListFilter { workspace, limit: Some(LISTED), ..ListFilter::default() };
        self.ask(
            |reply| Command::List { filter, reply },
            |face, chats| match chats {
                Ok(chats) => face.screen.update(Update::Chats(chats)),
                Err(failure) => face.screen.update(Update::Failed(failure)),
            },
        );
    }

    fn look_up_commands(&mut self, query: String) {
        let (session, asked) = (self.screen.session.clone(), query.clone());
        self.ask(
            |reply| Command::SlashCommands { session, query: asked, reply },
            |face, found| face.screen.update(Update::Commands { query, found: found.unwrap_or_default() }),
        );
    }

    fn look_up_contexts(&mut self, query: String) {
        let (session, asked) = (self.screen.session.clone(), query.clone());
        self.ask(
            |reply| Command::Contexts { session, query: asked, kind: ContextQuery::All, reply },
            |face, found| face.screen.update(Update::Contexts { query, found: found.unwrap_or_default() }),
        );
    }

    async fn edit(&mut self, text: String) {
        self.keys = None;
        self.tty.leave();
        let edited = (self.outside.edit)(text).await;
        self.take_back();
        self.screen.update(Update::Edited(edited));
    }

    fn suspend(&mut self) {
        self.keys = None;
        self.tty.leave();
        (self.outside.suspend)();
        self.take_back();
    }

    fn take_back(&mut self) {
        self.over |= self.tty.enter().is_err();
        self.keys = Some(EventStream::new());
    }

    fn show_or_say(&mut self, info: Result<SessionInfo, Failure>) {
        match info {
            Ok(info) => self.show(info),
            Err(failure) => self.screen.update(Update::Failed(failure)),
        }
    }

    /// This chat from its first fact on.
    fn show(&mut self, info: SessionInfo) {
        if self.screen.session.as_ref() != Some(&info.id) {
            self.let_go();
        }
        let session = info.id.clone();
        self.screen.update(Update::Opened(Box::new(info)));
        self.follower.follow(session, 0);
    }

    /// The chat that was shown is put away.
    fn let_go(&mut self) {
        if let Some(session) = self.screen.session.clone() {
            self.follower.forget(&session);
            self.ask(|reply| Command::Close { session, reply }, |_, _| {});
        }
    }

    fn tell(&mut self, make: impl FnOnce(SessionId) -> Command) {
        self.outbox.extend(self.screen.session.clone().map(make));
    }

    /// A command to the open chat of which only a failure is told.
    fn on_chat<T: Send + 'static>(&mut self, make: impl FnOnce(SessionId, domain::Reply<T>) -> Command) {
        let Some(session) = self.screen.session.clone() else { return };
        self.ask(
            |reply| make(session, reply),
            |face, done| {
                if let Err(failure) = done {
                    face.screen.update(Update::Failed(failure));
                }
            },
        );
    }

    /// Sends a command after those before it; `then` gets its reply on this task.
    fn ask<T: Send + 'static>(
        &mut self,
        make: impl FnOnce(domain::Reply<T>) -> Command,
        then: impl FnOnce(&mut ChatLoop, Result<T, Failure>) + Send + 'static,
    ) {
        let (reply, answer) = domain::command::reply();
        self.outbox.push(make(reply));
        self.pending.later(answer, then);
    }
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
