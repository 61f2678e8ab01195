//! Performs the effects that the screen requests: commands to the engine, services of the process.

use std::time::Duration;

use domain::command::{ContextQuery, RollbackScope, SessionSettings, UserPrompt, WorkspaceSpec};
use domain::job::JobStatus;
use domain::store::ListFilter;
use domain::tool::ServerAction;
use domain::{AskId, Command, Failure, ItemId, SessionId};
use ratatui::crossterm::event::EventStream;
use serde_json::Value;

use super::ChatLoop;
use super::allow_rule::{AllowRule, ExplainedCall};
use super::screen::{Effect, Update};

/// The length of the list of chats.
const MAX_LISTED_CHATS: usize = 200;

/// How often and how long after each other files are looked for that are not found.
const CONTEXT_TRIES: u32 = 6;
const CONTEXT_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Programs that the repository's own configuration names are not run.
const DIFF_COMMAND: &str =
    "git --no-pager -c core.fsmonitor=false diff --no-ext-diff --no-textconv --no-color ";
/// The tree without files, which stands for `HEAD` before the first commit.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// Files that git does not know yet, a folder of such files as one line.
const NEW_FILES_COMMAND: &str = "git --no-pager -c core.fsmonitor=false ls-files --others --exclude-standard \
                                 --directory --no-empty-directory";

/// Where the output of a shell command appears.
enum Shown {
    InChat,
    AsDiff,
    /// As the new files below this diff.
    AsNewFiles(String),
}

impl ChatLoop {
    pub(super) async fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Prompt(prompt) => self.prompt(*prompt),
            Effect::PromptWithFiles { prompt, written } => self.prompt_with_files(*prompt, &written),
            Effect::Steer(text) => self.steer(text),
            Effect::WithdrawSteering => {
                self.call_session(|session, reply| Command::Steer { session, text: None, reply });
            }
            Effect::Cancel => self.send_to_session(|session| Command::Cancel { session }),
            Effect::Answer { ask, answer } => {
                self.send_to_session(|session| Command::answer(session, ask, answer));
            }
            Effect::Configure(change) => self.configure(change),
            Effect::Load(session) => self.load(session),
            Effect::Fork(until) => self.fork(until),
            Effect::New => self.begin_new_session(),
            Effect::ListChats => self.list(),
            Effect::Commands { query } => self.look_up_commands(query),
            Effect::Contexts { query } => self.look_up_contexts(query, CONTEXT_TRIES),
            Effect::Catalog => self.look_up_catalog(),
            Effect::Jobs => self.count_jobs(),
            Effect::Servers => self.look_up_servers(),
            Effect::ServerAction { name, action } => self.act_on_server(name, action),
            Effect::Shell(command) => self.shell(command, Shown::InChat),
            Effect::Diff => self.shell(format!("{DIFF_COMMAND}HEAD"), Shown::AsDiff),
            Effect::AddInstruction(text) => self.add_instruction(text),
            Effect::Export { path, text } => self.export(path, text),
            Effect::Copy(text) => self.tty.copy(&text),
            Effect::Image { path, pasted } => {
                self.screen.add_image(&pasted, (self.services.image)(path));
            }
            Effect::ClipboardImage => self.attach_clipboard_image(),
            Effect::PreviewRule { ask, rule } => self.preview_rule(ask, rule),
            Effect::AllowInProject(rule) => self.allow_in_project(&rule),
            Effect::Login { provider, method } => self.log_in(provider, method),
            Effect::FinishLogin { provider, field, typed } => self.finish_login(provider, field, typed),
            Effect::Permissions => self.screen.show_permissions(self.services.rules.list()),
            Effect::Explain(call) => self.explain(*call),
            Effect::Rollback { from, scope } => self.roll_back(from, scope),
            Effect::Status { command, values } => self.make_status(command, values.to_string()),
            Effect::SaveSetting { keys, value } => self.save_setting(&keys, value),
            Effect::Logout(provider) => self.log_out(provider),
            Effect::AddFolder(folder) => self.add_folder(&folder),
            Effect::Notify(text) => self.notify(text),
            Effect::Edit(text) => self.edit(text).await,
            Effect::Suspend => self.suspend(),
            Effect::Leave => self.is_over = true,
        }
    }

    fn export(&mut self, path: String, text: String) {
        let written = (self.services.export)(path, text);
        self.report(written.map(|path| format!("Written to {path}.")));
    }

    fn save_setting(&mut self, keys: &[&'static str], value: Value) {
        let saved = (self.services.save_setting)(keys, value);
        self.report(saved.map(|path| format!("The setting is in {path}.")));
    }

    fn notify(&mut self, text: &'static str) {
        self.tty.notify(text);
        (self.services.notify)(text);
    }

    fn begin_new_session(&mut self) {
        self.close_current_session();
        self.screen.start_new_session();
        self.screen.intro = (self.services.intro)();
    }

    fn add_instruction(&mut self, text: String) {
        let added = (self.services.add_instruction)(text);
        self.screen.intro = (self.services.intro)();
        self.report(added.map(|path| format!("Added to {path}.")));
    }

    fn attach_clipboard_image(&mut self) {
        let image = (self.services.clipboard_image)();
        self.pending.later(image, |chat_loop, image| chat_loop.screen.add_clipboard_image(image));
    }

    fn preview_rule(&mut self, ask: AskId, rule: AllowRule) {
        match self.services.rules.preview(&rule) {
            Ok(lines) => self.screen.show_rule(ask, rule, lines),
            Err(failure) => self.screen.flash(failure.to_string()),
        }
    }

    fn allow_in_project(&mut self, rule: &AllowRule) {
        let written = self.services.rules.write(rule);
        self.report(written.map(|path| format!("The rule is in {path}.")));
    }

    fn explain(&mut self, call: ExplainedCall) {
        let explained = (self.services.explain)(call);
        self.pending.later(explained, |chat_loop, explained| {
            chat_loop.screen.apply_update(match explained {
                Ok(lines) => Update::Explained(lines),
                Err(failure) => Update::Failed(failure),
            });
        });
    }

    /// One run at a time; the newest values wait. A command that fails leaves the line empty.
    fn make_status(&mut self, command: String, values: String) {
        if self.status_runs {
            self.status_waits = Some((command, values));
            return;
        }
        self.status_runs = true;
        let output = (self.services.status)(command, values);
        self.pending.later(output, |chat_loop, output| {
            let text = output.unwrap_or_default();
            let first = text.lines().next().unwrap_or_default().to_owned();
            chat_loop.screen.apply_update(Update::Status(first));
            chat_loop.status_runs = false;
            if let Some((command, values)) = chat_loop.status_waits.take() {
                chat_loop.make_status(command, values);
            }
        });
    }

    fn log_out(&mut self, provider: String) {
        let name = provider.clone();
        self.call(
            |reply| Command::Logout { provider, reply },
            move |chat_loop, done| {
                chat_loop.report(done.map(|()| format!("The stored key of {name} is deleted.")));
            },
        );
    }

    /// The folders of a chat do not change, so the folder is there from the next one on.
    fn add_folder(&mut self, folder: &str) {
        let folder = match (self.services.folder)(folder) {
            Ok(folder) => folder,
            Err(failure) => return self.report(Err(failure)),
        };
        let mut roots = self.screen.roots.clone();
        if roots.contains(&folder) {
            return self.report(Ok(format!("{} is there already.", folder.display())));
        }
        roots.push(folder.clone());
        let workspace = WorkspaceSpec { roots: roots.clone(), options: None };
        self.call(
            |reply| Command::Enter { workspace, reply },
            move |chat_loop, catalog| match catalog {
                Err(failure) => chat_loop.report(Err(failure)),
                Ok(catalog) => {
                    let when =
                        if chat_loop.screen.session.is_some() { "The next chat (/new)" } else { "This chat" };
                    chat_loop.screen.roots = roots;
                    chat_loop.screen.intro.folders.push(folder.display().to_string());
                    chat_loop.screen.apply_update(Update::Catalog(catalog));
                    chat_loop.screen.flash(format!("{when} works in {} too.", folder.display()));
                }
            },
        );
    }

    fn roll_back(&mut self, from: ItemId, scope: RollbackScope) {
        self.call_session(|session, reply| Command::Rollback { session, from: Some(from), scope, reply });
    }

    fn configure(&mut self, change: SessionSettings) {
        self.call_session(|session, reply| Command::Configure { session: Some(session), change, reply });
    }

    fn load(&mut self, session: SessionId) {
        self.call(|reply| Command::Load { session, servers: Vec::new(), reply }, Self::show_or_report);
    }

    fn fork(&mut self, until: Option<ItemId>) {
        let Some(session) = self.screen.session.clone() else { return };
        self.call(|reply| Command::Fork { session, until, id: None, reply }, Self::show_or_report);
    }

    /// Files that the words name with `@` belong to the prompt, chosen from the list or not.
    pub(super) fn prompt_with_files(&mut self, mut prompt: UserPrompt, written: &str) {
        for context in (self.services.mentioned)(written) {
            if !prompt.contexts.contains(&context) {
                prompt.contexts.push(context);
            }
        }
        self.prompt(prompt);
    }

    fn prompt(&mut self, prompt: UserPrompt) {
        let (text, contexts) = (prompt.text.clone(), prompt.contexts.clone());
        let not_sent = move |chat_loop: &mut ChatLoop, failure: Failure| {
            chat_loop.screen.apply_update(Update::NotSent { text, contexts, failure });
        };
        if let Some(session) = self.screen.session.clone() {
            return self.call(
                |reply| Command::Prompt { session, prompt, reply },
                move |chat_loop, accepted| match accepted {
                    Ok(_) => chat_loop.screen.apply_update(Update::Sent),
                    Err(failure) => not_sent(chat_loop, failure),
                },
            );
        }
        let settings = self.screen.settings.clone();
        self.call(
            |reply| Command::Open { id: None, workspace: None, settings, servers: Vec::new(), reply },
            move |chat_loop, opened| match opened {
                Ok(info) => {
                    chat_loop.show(info);
                    chat_loop.prompt(prompt);
                }
                Err(failure) => not_sent(chat_loop, failure),
            },
        );
    }

    fn steer(&mut self, text: String) {
        let Some(session) = self.screen.session.clone() else { return };
        let sent = text.clone();
        self.call(
            |reply| Command::Steer { session, text: Some(sent), reply },
            move |chat_loop, steered| {
                if steered.is_err() {
                    chat_loop.screen.apply_update(Update::NotSteered(text));
                }
            },
        );
    }

    fn list(&mut self) {
        let workspace = Some(self.screen.roots.clone());
        let filter = ListFilter { workspace, limit: Some(MAX_LISTED_CHATS), ..ListFilter::default() };
        self.call(
            |reply| Command::List { filter, reply },
            |chat_loop, chats| match chats {
                Ok(chats) => chat_loop.screen.apply_update(Update::Chats(chats)),
                Err(failure) => chat_loop.screen.apply_update(Update::Failed(failure)),
            },
        );
    }

    fn look_up_catalog(&mut self) {
        self.call(
            |reply| Command::Catalog { reply },
            |chat_loop, catalog| match catalog {
                Ok(catalog) => chat_loop.screen.apply_update(Update::Catalog(catalog)),
                Err(failure) => chat_loop.screen.apply_update(Update::Failed(failure)),
            },
        );
    }

    fn count_jobs(&mut self) {
        self.call(
            |reply| Command::Jobs { reply },
            |chat_loop, jobs| {
                let jobs = jobs.unwrap_or_default();
                let running = jobs.iter().filter(|job| job.status == JobStatus::Running).count();
                chat_loop.screen.apply_update(Update::Jobs(running));
            },
        );
    }

    fn look_up_servers(&mut self) {
        self.call(
            |reply| Command::Servers { session: None, reply },
            |chat_loop, servers| {
                chat_loop.screen.apply_update(Update::Servers(servers.unwrap_or_default()));
            },
        );
    }

    fn act_on_server(&mut self, name: String, action: ServerAction) {
        self.call(
            |reply| Command::ServerAction { name, action, reply },
            |chat_loop, done| {
                if let Err(failure) = done {
                    chat_loop.screen.apply_update(Update::Failed(failure));
                }
            },
        );
    }

    fn look_up_commands(&mut self, query: String) {
        if query.contains(char::is_whitespace) {
            return self.look_up_arguments(query);
        }
        let (session, asked) = (self.screen.session.clone(), query.clone());
        self.call(
            |reply| Command::SlashCommands { session, query: asked, reply },
            |chat_loop, found| {
                chat_loop.screen.apply_update(Update::Commands { query, found: found.unwrap_or_default() })
            },
        );
    }

    fn look_up_arguments(&mut self, line: String) {
        let mut words = line.split_whitespace().map(str::to_owned);
        let command = words.next().unwrap_or_default();
        let mut arguments: Vec<String> = words.collect();
        if line.ends_with(char::is_whitespace) {
            arguments.push(String::new());
        }
        self.call(
            |reply| Command::CompleteArgument { command, arguments, reply },
            |chat_loop, found| {
                chat_loop.screen.apply_update(Update::Arguments(line, found.unwrap_or_default()))
            },
        );
    }

    /// Asks again where nothing is found and nothing else was typed: a large tree may still be walked.
    fn look_up_contexts(&mut self, query: String, tries: u32) {
        let (session, asked) = (self.screen.session.clone(), query.clone());
        self.call(
            |reply| Command::Contexts { session, query: asked, kind: ContextQuery::All, reply },
            move |chat_loop, found| {
                let found = found.unwrap_or_default();
                if found.is_empty() && tries > 1 {
                    let again = query.clone();
                    let pause = tokio::time::sleep(CONTEXT_RETRY_DELAY);
                    chat_loop.pending.later(pause, move |chat_loop, ()| {
                        if chat_loop.screen.completes_file(&again) {
                            chat_loop.look_up_contexts(again, tries - 1);
                        }
                    });
                }
                chat_loop.screen.apply_update(Update::Contexts { query, found });
            },
        );
    }

    async fn edit(&mut self, text: String) {
        self.keys = None;
        self.tty.leave();
        let edited = (self.services.edit)(text).await;
        self.reclaim_terminal();
        self.screen.apply_update(Update::Edited(edited));
    }

    fn suspend(&mut self) {
        self.keys = None;
        self.tty.leave();
        (self.services.suspend)();
        self.reclaim_terminal();
    }

    fn reclaim_terminal(&mut self) {
        self.is_over |= self.tty.enter().is_err();
        self.keys = Some(EventStream::new());
    }

    fn shell(&mut self, command: String, shown: Shown) {
        let output = (self.services.shell)(command.clone());
        self.pending.later(output, move |chat_loop, output| {
            let update = match (output, shown) {
                (Ok(output), Shown::InChat) => Update::ShellOutput { command, output },
                (Ok(output), Shown::AsDiff) if output.starts_with("fatal: ambiguous argument 'HEAD'") => {
                    return chat_loop.shell(format!("{DIFF_COMMAND}{EMPTY_TREE}"), Shown::AsDiff);
                }
                (Ok(output), Shown::AsDiff) if output.contains("not a git repository") => {
                    Update::Failed(Failure::user("This folder is not in a git repository."))
                }
                (Ok(diff), Shown::AsDiff) => {
                    return chat_loop.shell(NEW_FILES_COMMAND.to_owned(), Shown::AsNewFiles(diff));
                }
                (Ok(output), Shown::AsNewFiles(diff)) => Update::Diff { diff, new_files: output },
                (Err(failure), _) => Update::Failed(failure),
            };
            chat_loop.screen.apply_update(update);
        });
    }

    pub(super) fn report(&mut self, done: Result<String, Failure>) {
        self.screen.apply_update(match done {
            Ok(text) => Update::Info(text),
            Err(failure) => Update::Failed(failure),
        });
    }
}
