//! Runs the engine again from the journal of a chat, without network, tools or files, and compares what it writes.
//!
//! Owns the replay as a whole: a script is read from the journal, a recording plays it, and this file does what the user
//! did. Must not know front-ends. Invariants: a replay changes nothing outside its memory; it ends, because each step of
//! it is work that is ready to run, never a time.

#![allow(clippy::wildcard_enum_match_arm, reason = "a script looks for a few facts among many")]

mod answer_script;
mod compare;
mod memory;
mod note_limits;
mod outcome;
mod recording;
mod script;
mod turn_end;
mod turn_script;
mod world;

use std::sync::Arc;

use domain::command::{Command, RollbackScope, SessionSettings, TurnLimits, UserPrompt};
use domain::event::{Fact, Outcome};
use domain::ids::SUBAGENT_PREFIX;
use domain::link::{Commands, Link};
use domain::{Abilities, Answer, AskId, Failure, ItemId, Recorded, SessionId};
use session::state::State;

use compare::Ranks;
use memory::Memory;
pub use outcome::{Difference, Limit, Replayed};
use recording::Gate;
use recording::Recording;
use script::{Script, Segment};
use turn_end::TurnEnd;
use turn_script::{RecordedAnswer, TurnScript};

/// Rounds in which nothing is written before the engine counts as waiting. Everything runs on one thread, so that each
/// round lets every task go on that can.
const QUIET_ROUNDS: usize = 64;

/// Replays a chat. Must run on a runtime with one thread.
pub async fn replay(session: &SessionId, facts: &[Recorded]) -> Replayed {
    let recorded = script::closed(facts);
    let Script { given, segments, title } = script::read(&recorded);
    let turns = segments.iter().filter(|segment| matches!(segment, Segment::Turn(_))).count();
    let limits = segments.iter().filter_map(|segment| match segment {
        Segment::Adopted { limit, .. } => limit.clone(),
        _ => None,
    });
    let limits: Vec<Limit> = limits.collect();
    let memory = Memory::default();
    memory.adopt(recorded[..given].iter().map(|recorded| recorded.fact.clone()));
    let mut replay = Replay {
        // An ended subagent takes no prompts, and its id says that it is one.
        session: SessionId::new(session.as_str().trim_start_matches(SUBAGENT_PREFIX)),
        recording: Recording::new(title),
        memory,
        world: world::World::of(&recorded),
        link: None,
        ranks: Ranks::of(&recorded),
    };
    let mut stopped_at = None;
    for segment in segments {
        if let Err(failure) = replay.play(segment, &recorded).await {
            stopped_at = Some(failure);
            break;
        }
    }
    replay.settle().await;
    let replayed = replay.memory.facts();
    let difference = compare::first_difference(&recorded, &replayed, given).or_else(|| {
        let failure = stopped_at?;
        Some(Difference { number: u64::MAX, recorded: None, replayed: Some(failure.to_string()) })
    });
    Replayed { facts: facts.len(), turns: turns + limits.len(), limits, difference }
}

struct Replay {
    session: SessionId,
    recording: Recording,
    memory: Memory,
    world: world::World,
    /// `None`: no engine runs.
    link: Option<Link>,
    ranks: Ranks,
}

impl Replay {
    async fn play(&mut self, segment: Segment, recorded: &[Recorded]) -> Result<(), Failure> {
        match segment {
            Segment::Configure(change) => self.configure(change).await,
            Segment::Rollback { keep } => self.roll_back(keep).await,
            Segment::Turn(script) => {
                self.run_turn(*script).await?;
                // The turn may have ended before its settings could change.
                while let Some(change) = self.next_change() {
                    self.configure(change).await?;
                }
                Ok(())
            }
            Segment::Adopted { facts, .. } => {
                self.kill();
                self.memory.adopt(recorded[facts].iter().map(|recorded| recorded.fact.clone()));
                Ok(())
            }
        }
    }

    /// The commands of the engine, which is started where none runs.
    async fn commands(&mut self) -> Result<Commands, Failure> {
        if let Some(link) = &self.link {
            return Ok(link.commands.clone());
        }
        self.memory = self.memory.next_process();
        let source = self.world.workspaces(&self.recording);
        let (_changes, receiver) = engine::changes();
        let (store, decisions) = (Arc::new(self.memory.clone()), Arc::new(self.recording.clone()));
        let engine = engine::start_with_decisions(store, source, receiver, decisions);
        let abilities = Abilities {
            approvals: true,
            questions: true,
            forms: true,
            proposes_changes: self.world.proposes_changes,
            ..Abilities::default()
        };
        let link = engine.attach(abilities).await?;
        let commands = link.commands.clone();
        self.link = Some(link);
        let session = self.session.clone();
        commands.call(|reply| Command::Load { session, servers: Vec::new(), reply }).await?;
        Ok(commands)
    }

    /// The process dies. What it had not written is gone.
    fn kill(&mut self) {
        if self.link.take().is_some() {
            self.memory = self.memory.next_process();
        }
    }

    async fn configure(&mut self, change: SessionSettings) -> Result<(), Failure> {
        let session = Some(self.session.clone());
        let commands = self.commands().await?;
        commands.call(|reply| Command::Configure { session, change, reply }).await.map(drop)
    }

    async fn roll_back(&mut self, keep: Option<ItemId>) -> Result<(), Failure> {
        let kept = keep.map_or(0, |keep| self.ranks.rank(keep));
        let from = self.first_item_after(kept).filter(|_| kept > 0);
        let (session, scope) = (self.session.clone(), RollbackScope::Messages);
        let commands = self.commands().await?;
        commands.call(|reply| Command::Rollback { session, from, scope, reply }).await
    }

    /// The first item of the history whose rank is greater.
    fn first_item_after(&self, rank: u64) -> Option<ItemId> {
        let facts = self.memory.facts();
        let ranks = Ranks::of(&facts);
        let mut state = State::default();
        facts.iter().for_each(|recorded| state.fold(recorded.number, &recorded.fact));
        state.items().iter().map(|item| item.id).find(|id| ranks.rank(*id) > rank)
    }

    async fn run_turn(&mut self, script: TurnScript) -> Result<(), Failure> {
        let (turn, end) = (script.id, script.end.clone());
        let limits = TurnLimits {
            max_steps: script.max_steps,
            failover: script.failovers.clone(),
            ..TurnLimits::default()
        };
        let prompt = UserPrompt { text: script.text.clone(), limits, ..UserPrompt::default() };
        self.recording.begin(script);
        let start = self.memory.len();
        let (session, commands) = (self.session.clone(), self.commands().await?);
        if end == TurnEnd::Killed {
            self.memory.die_at_turn_end();
        }
        commands.call(|reply| Command::Prompt { session, prompt, reply }).await?;
        let mut is_stopped = false;
        loop {
            self.settle().await;
            let is_end = |fact: &Fact| matches!(fact, Fact::TurnEnded { turn: ended, .. } if *ended == turn);
            if self.memory.has(start, is_end) {
                return Ok(());
            }
            if self.memory.is_dead() {
                return self.restart().await;
            }
            if self.go_on(&commands, start, &end).await? {
                continue;
            }
            if is_stopped {
                return Err(Failure::internal(format!(
                    "{turn} does not end, and the record says that it does."
                )));
            }
            is_stopped = true;
            match &end {
                TurnEnd::Itself(Outcome::Stopped) => self.cancel(&commands).await?,
                TurnEnd::Itself(_) => {}
                TurnEnd::Aborted => {
                    commands.call(|reply| Command::Shutdown { reply }).await?;
                    return self.restart().await;
                }
                TurnEnd::Killed => return self.restart().await,
            }
        }
    }

    /// Another process goes on with the chat; it ends what the one before left open.
    async fn restart(&mut self) -> Result<(), Failure> {
        self.kill();
        self.commands().await?;
        self.settle().await;
        Ok(())
    }

    async fn cancel(&self, commands: &Commands) -> Result<(), Failure> {
        commands.send(Command::Cancel { session: self.session.clone() }).await
    }

    /// Does the next thing that the user did in this turn. False: there is none.
    async fn go_on(&mut self, commands: &Commands, start: usize, end: &TurnEnd) -> Result<bool, Failure> {
        let session = self.session.clone();
        match self.recording.take_gate() {
            Some(Gate::Steer(text, open)) => {
                let text = Some(text);
                let steered = commands.call(|reply| Command::Steer { session, text, reply }).await;
                let _ = open.send(());
                return steered.map(|()| true);
            }
            Some(Gate::Stop(open)) => {
                self.cancel(commands).await?;
                self.settle().await;
                let _ = open.send(());
                return Ok(true);
            }
            None => {}
        }
        if let Some(change) = self.next_change() {
            self.configure(change).await?;
            return Ok(true);
        }
        for (ask, item) in self.open_asks(start) {
            if let Some(RecordedAnswer { answer, is_last }) = self.answer_to(item, end) {
                commands.send(Command::answer(session, ask, answer)).await?;
                // Before the turn can go on.
                if is_last && *end == TurnEnd::Itself(Outcome::Stopped) {
                    self.cancel(commands).await?;
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn next_change(&self) -> Option<SessionSettings> {
        self.recording.with_turn(|script| script.changes.pop_front()).flatten()
    }

    /// The recorded answer to the next question of an item; `None` where a stop was the answer.
    fn answer_to(&self, item: Option<ItemId>, end: &TurnEnd) -> Option<RecordedAnswer> {
        let recorded = item.and_then(|item| self.recording.recorded_item(item));
        let answer = self.recording.with_turn(|script| {
            let answers = script.answers.get_mut(&recorded)?;
            let next = answers.front()?;
            let is_stop = next.is_last && next.answer == Answer::Cancelled;
            let stops = matches!(end, TurnEnd::Itself(Outcome::Stopped) | TurnEnd::Aborted);
            if is_stop && stops { None } else { answers.pop_front() }
        });
        answer.flatten()
    }

    /// The questions of this turn that wait for an answer.
    fn open_asks(&self, start: usize) -> Vec<(AskId, Option<ItemId>)> {
        let mut open = Vec::new();
        for recorded in self.memory.facts_from(start) {
            match recorded.fact {
                Fact::AskRaised { ask } => open.push((ask.id, ask.item)),
                Fact::AskSettled { id, .. } => open.retain(|(known, _)| *known != id),
                _ => {}
            }
        }
        open
    }

    /// Lets the engine work until it waits.
    async fn settle(&self) {
        let mut length = self.memory.len();
        let mut quiet = 0;
        while quiet < QUIET_ROUNDS {
            tokio::task::yield_now().await;
            let now = self.memory.len();
            quiet = if now == length { quiet + 1 } else { 0 };
            length = now;
        }
    }
}
