//! One turn: model → tool calls → model, until the model is done. A loop over answers, each a fold over events.
//!
//! Must not know front-ends or the store. Invariants: a turn always ends, whatever happened; a stop takes effect at
//! once in every state; finished tool calls are never run again.

pub(crate) mod answer;
pub(crate) mod cleared;
pub(crate) mod compaction;
mod external;
mod failover;
pub(crate) mod goal;
pub(crate) mod goal_checks;
mod goal_run;
mod images;
pub(crate) mod instructions;
pub(crate) mod loops;
pub(crate) mod nested_instructions;
mod next;
pub(crate) mod prompt;
pub(crate) mod start;
mod state;
mod verify;

use std::sync::Arc;

use domain::Failure;
use domain::event::{Fact, Level, Notice, Outcome};
use domain::item::{Item, ItemKind, Part};
use domain::model::{ModelInfo, Prompt, WrittenHistory};
use domain::note::{Note, NoteAbout};
use domain::tool::{Tool, ToolSpec};
use session::offered_tools;

use crate::behavior;
use crate::context_use::Estimate;
use crate::hooks;
use crate::memory;
use crate::own_text::own_description;
use crate::paid_call::{self, PaidCall};
use crate::recall::Recall;
use crate::rules::FetchRule;
use crate::session::Instructions;
use crate::skills::LoadSkill;
use crate::spending;
use crate::subagents::SpawnAgent;
use crate::title;
use crate::tool_calls::{self, CallsEnd};
use crate::tool_search::ToolList;
use answer::{Answer, StepPosition};
pub(crate) use compaction::clearing;
pub(crate) use external::offers as agent_offers;
pub use external::{AGENT_PREFIX, is_of_agent};
use loops::LoopDetector;
use next::{Next, Said, outcome_of};
pub(crate) use state::Turn;

impl Turn {
    /// Runs to the end. The actor commits the outcome, when the chat is free for the next prompt.
    pub(crate) async fn run(mut self) -> Outcome {
        let _clock = self.goal.as_ref().map(|goal| goal.start_clock(&self.cancel));
        let mut outcome = match self.run_steps().await {
            Ok(outcome) => outcome,
            Err(_) if self.cancel.is_cancelled() => Outcome::Stopped,
            Err(failure) => Outcome::Failed { failure },
        };
        if let Outcome::Failed { failure } = &mut outcome {
            failure.is_too_long = false;
        }
        title::finish_turn(&self, &outcome);
        goal::conclude(&self, outcome)
    }

    /// What the model would be sent next.
    pub(crate) fn prompt_now(&self) -> Prompt {
        self.prompt(&ToolList::new(self.tools(), &self.session, &self.model.info()))
    }

    async fn run_steps(&mut self) -> Result<Outcome, Failure> {
        self.wait_for_new_servers().await;
        let mut loops = LoopDetector::default();
        for step in 1..=self.max_steps {
            let mut may_compact = !self.hooks.is_compaction_blocked();
            let info = self.model.info();
            if may_compact && compaction::is_due(&self.session, &info) && !clearing::make_room(self, &info) {
                compaction::run(self, None, "auto").await?;
                self.read_instructions_again();
            }
            loop {
                if self.cancel.is_cancelled() {
                    return Ok(Outcome::Stopped);
                }
                if let Some(failure) = self.session.log.failure() {
                    return Err(failure);
                }
                spending::check_caps(&self.session, &self.limits, self.cost_before).await?;
                match self.run_step(step, &mut loops, may_compact).await {
                    Next::Step => break,
                    Next::Retry => {}
                    Next::Compact => {
                        may_compact = false;
                        compaction::run(self, None, "auto").await?;
                        self.read_instructions_again();
                    }
                    Next::End(outcome) => return Ok(outcome),
                }
            }
        }
        Ok(Outcome::MaxSteps)
    }

    /// Servers of which nothing is known get a moment, so that the first request has their tools. One that is later
    /// changes the set of tools, which `/costs` names.
    async fn wait_for_new_servers(&self) {
        let lists = async {
            for source in self.session.sources() {
                source.first_lists().await;
            }
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {}
            () = lists => {}
        }
    }

    /// One model answer and the calls it asks for. `may_compact`: a request that does not fit is not the last word.
    async fn run_step(&mut self, step: u32, loops: &mut LoopDetector, may_compact: bool) -> Next {
        if let Some(agent) = self.model.agent() {
            return external::run(self, step, agent, loops).await;
        }
        self.session.show_progress("Waiting model");
        let info = self.model.info();
        let tools = ToolList::new(self.tools(), &self.session, &info);
        self.session.add_description_taint(tools.offered());
        let mut prompt = self.prompt(&tools);
        if images::are_refused(&self.session, &info.id).await {
            images::remove(&mut prompt);
        }
        let estimate = spending::estimate_call(&self.session, &prompt);
        if may_compact && compaction::is_due_for(&self.session, self.id, &info, estimate) {
            return Next::Compact;
        }
        self.warn_of_length(&info, estimate);
        let call = match self.reserve(&info, &prompt).await {
            Ok(call) => call,
            Err(outcome) => return Next::End(outcome),
        };
        spending::note_call(&self.session, &info.id, &prompt);
        let stream = call.stream(self.model.stream(prompt));
        let position = StepPosition { turn: self.id, step };
        let answered = answer::receive(&self.session, position, &tools, stream, &self.cancel).await;
        let Answer { calls, is_empty, tokens, images_refused, end } = answered;
        if images_refused {
            images::remember_refusal(&self.session, position, &info.id).await;
        }
        if let Some(tokens) = tokens {
            spending::record_answer(&self.session, &info, tokens);
        }
        match outcome_of(end) {
            Some(Outcome::Failed { failure }) if is_empty && may_compact && self.can_shorten(&failure) => {
                Next::Compact
            }
            Some(Outcome::Failed { failure }) if is_empty && self.fail_over(&failure) => Next::Retry,
            Some(outcome) => {
                tool_calls::drop_unrun(&self.session, calls);
                Next::End(outcome)
            }
            None if calls.is_empty() => match self.next_message().await {
                Some(Said::Report(text)) => self.add_report(step, text),
                Some(Said::User(text)) => self.add_message(step, text),
                None if self.cancel.is_cancelled() => Next::End(Outcome::Stopped),
                None => self.finish(step, &tools, loops).await,
            },
            None => self.run_calls(step, calls, &tools, loops).await,
        }
    }

    /// After a compaction the request is read anew, so it has the instructions as they are now.
    fn read_instructions_again(&mut self) {
        if self.instructions.is_forgotten() {
            let Instructions { system, fetched_rules } =
                instructions::of(&self.session, &self.instructions, &self.model.info());
            (self.system, self.fetched_rules) = (system, fetched_rules);
        }
    }

    /// Whether a summary of the chat may make a request fit that the provider refused as too long.
    fn can_shorten(&self, failure: &Failure) -> bool {
        failure.is_too_long && compaction::is_possible(&self.session, self.id)
    }

    /// Tells the user, once in a turn, of a request that the model cannot read in whole.
    fn warn_of_length(&mut self, info: &ModelInfo, estimate: Estimate) {
        let is_exceeded = |limit: &u64| *limit > 0 && estimate.has_too_long_history(*limit);
        let Some(limit) = info.context_limit.filter(is_exceeded) else { return };
        if self.is_warned_of_length || !self.session.decisions.measures_requests() {
            return;
        }
        self.is_warned_of_length = true;
        let (tokens, model) = (estimate.tokens, &info.id);
        let text = format!(
            "This request has about {tokens} tokens, and the window of {model} holds {limit}. The provider may refuse it or \
             leave out a part of it. Attach less, or choose a model with a larger window."
        );
        self.session.commit(vec![Fact::Notice { notice: Notice { level: Level::Warning, text } }]);
    }

    /// The right to one call. It may have to wait for other calls of the account that pays.
    async fn reserve(&self, info: &ModelInfo, prompt: &Prompt) -> Result<PaidCall, Outcome> {
        let gate = spending::gate(&self.session);
        tokio::select! {
            biased;
            reserved = paid_call::reserve(&gate, info, prompt) => {
                reserved.map_err(|failure| Outcome::Failed { failure })
            }
            () = self.cancel.cancelled() => Err(Outcome::Stopped),
        }
    }

    async fn run_calls(
        &mut self,
        step: u32,
        calls: Vec<Item>,
        tools: &ToolList,
        loops: &mut LoopDetector,
    ) -> Next {
        let may_change_files = !calls.iter().all(|call| tools.only_reads(call));
        let end = tool_calls::run(self, calls, tools, loops).await;
        if may_change_files {
            self.skills.forget();
        }
        match end {
            CallsEnd::Stop(outcome) => Next::End(outcome),
            CallsEnd::Continue { summary } => {
                if let Some(summary) = summary
                    && let Err(failure) = compaction::replace_by(self, summary, "auto").await
                {
                    return Next::End(Outcome::Failed { failure });
                }
                self.read_instructions_again();
                self.add_recorded_notes(step);
                if let Some(report) = self.background.take_reports() {
                    self.add_report(step, report);
                }
                if let Some(text) = self.session.steering.take() {
                    self.add_message(step, text);
                }
                Next::Step
            }
        }
    }

    /// What the model must still hear when it is done: text of the user, reports of subagents in the background.
    async fn next_message(&self) -> Option<Said> {
        while self.background.is_working() && !self.cancel.is_cancelled() {
            let report = self.background.take_reports().map(Said::Report);
            let said = report.or_else(|| self.session.steering.take().map(Said::User));
            if said.is_some() {
                return said;
            }
            self.session.show_progress("Waiting for agents");
            tokio::select! {
                () = self.background.wait() => {}
                () = self.session.steering.added() => {}
                () = self.cancel.cancelled() => {}
            }
        }
        self.session.steering.take_or_close().map(Said::User)
    }

    /// The model is done. The goal, a change that nothing has checked, and hooks may have it go on.
    async fn finish(&mut self, step: u32, tools: &ToolList, loops: &mut LoopDetector) -> Next {
        memory::take_proposals(&self.session, self.id, step, &hooks::last_answer(self));
        if self.session.decisions.is_recorded() {
            if self.add_recorded_notes(step) {
                self.session.steering.open();
                return Next::Step;
            }
        } else if let Some(next) = goal::at_end(self, step, tools, loops).await {
            return next;
        } else if self.goal.is_none()
            && step < self.max_steps
            && let Some(note) = verify::nudge(self, tools).await
        {
            self.session.steering.open();
            return self.add_note(step, note);
        }
        match hooks::after_request(self, step).await {
            Ok(Some(text)) => {
                self.session.steering.open();
                self.add_report(step, text)
            }
            Ok(None) => Next::End(Outcome::Done),
            Err(failure) => Next::End(Outcome::Failed { failure }),
        }
    }

    /// What Dragoman itself tells the model.
    fn add_note(&self, step: u32, note: Note) -> Next {
        let item = self.session.new_item(self.id, step, ItemKind::Note(Box::new(note)));
        self.session.commit(vec![Fact::ItemEnded { item }]);
        Next::Step
    }

    /// Text of a subagent or a hook: not the user's words.
    fn add_report(&self, step: u32, text: String) -> Next {
        self.add_note(step, Note::for_model(NoteAbout::Report, text.clone(), text))
    }

    /// The notes that a journal has after the answer at hand. False: it has none, or nothing is replayed.
    fn add_recorded_notes(&self, step: u32) -> bool {
        let notes = self.session.decisions.take_notes();
        let are_any = !notes.is_empty();
        for note in notes {
            self.add_note(step, note);
        }
        are_any
    }

    /// What the user said while the turn ran becomes a message.
    fn add_message(&self, step: u32, text: String) -> Next {
        let kind = ItemKind::UserMessage { parts: vec![Part::text(text.clone())], text };
        let item = self.session.new_item(self.id, step, kind);
        self.session.commit(vec![Fact::ItemEnded { item }]);
        Next::Step
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let info = self.model.info();
        let mut tools = behavior::tools(&self.session, Some(&self.session.behavior()), &info);
        let abilities = self.frontend.as_ref().map(|frontend| frontend.abilities.clone()).unwrap_or_default();
        tools.retain(|tool| tool.is_useful_with(&abilities));
        if info.tools {
            let is_enabled = |tool: &Arc<dyn Tool>| !behavior::is_disabled(&self.session, tool.spec());
            tools.extend(self.own_tools().into_iter().filter(is_enabled));
        }
        tools
    }

    /// The tools of the engine itself.
    fn own_tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        tools.extend(SpawnAgent::of(self).map(|tool| Arc::new(tool) as Arc<dyn Tool>));
        tools.extend(LoadSkill::of(&self.session, &self.skills).map(|tool| Arc::new(tool) as Arc<dyn Tool>));
        tools.extend(FetchRule::of(&self.fetched_rules).map(|tool| Arc::new(tool) as Arc<dyn Tool>));
        tools.extend(Recall::of(&self.session).map(|tool| Arc::new(tool) as Arc<dyn Tool>));
        tools
    }

    fn prompt(&self, tools: &ToolList) -> Prompt {
        let (behavior, settings) = (self.session.behavior(), &self.session.workspace.settings);
        let prompts = settings.prompts(&behavior);
        let info = self.model.info();
        let profile = self.session.profile.of(&info.id, &settings.model_families);
        let shown = |spec: &ToolSpec| {
            let own = own_description(spec, prompts);
            let is_own = own.is_some();
            let mut spec = offered_tools::described(spec, own);
            profile.show_tool(&mut spec, is_own);
            spec
        };
        let (family, is_plain) = (profile.family.value, prompts.tools.is_empty());
        let specs = self.session.offered_tools.update(tools.offered(), family, is_plain, shown);
        let of_behavior = || {
            let variant = settings.behavior_variant(&behavior)?.to_owned();
            info.variants.contains(&variant).then_some(variant)
        };
        let text_tools = tools
            .offered()
            .iter()
            .filter_map(|tool| tool.text_format().map(|format| (tool.spec().offered_name(), format)));
        // Before the state is locked.
        let has_own_instructions = instructions::are_own(&self.session, &info);
        let deferred = tools.deferred(&self.session);
        let state = self.session.state();
        let (keys, entries) = prompt::keyed_entries(&state, tools.is_carried()).into_iter().unzip();
        Prompt {
            session: Some(self.session.id.clone()),
            has_own_instructions,
            system: self.system.clone(),
            tools: specs,
            deferred,
            entries,
            written: Some(WrittenHistory { keys, place: self.session.written.clone() }),
            variant: state
                .settings()
                .variant
                .clone()
                // The user chose the default again.
                .filter(|variant| !variant.is_empty())
                .or_else(of_behavior)
                .or_else(|| profile.effort_for(&info)),
            text_tools: text_tools.collect(),
            is_sequential: !profile.parallel.value,
            output_schema: self.limits.output_schema.clone(),
            has_alternative: self.has_alternative(),
            ..Prompt::default()
        }
    }
}
