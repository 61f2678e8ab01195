//! Generating and changing an interface by the child: one change of a tab at a time, later ones wait in order.
//!
//! Invariant: every message ends as sent or with a problem; a failure blocks nothing.

use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use web::ApiError;

use crate::cli::{Chunk, CliError, CliErrorKind, Method};
use crate::console::{EntryKind, Level};
use crate::model::{Activity, Message, MessageStatus, Role, ToolUse, VersionKind};
use crate::specification::{SpecificationInput, looks_like_specification};
use crate::studio::{Studio, no_tab, problem_of};
use crate::versions::NewVersion;

/// Changes of a tab that may wait.
const MOST_QUEUED: usize = 50;
const LONGEST_MESSAGE: usize = 100 * 1024;
/// Messages before a wish that the child is given.
const HISTORY: usize = 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageInput {
    pub text: String,
    #[serde(default)]
    pub answer_to: Option<String>,
    #[serde(default)]
    pub intent: Intent,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Intent {
    #[default]
    Auto,
    Change,
    Ask,
}

impl Studio {
    /// Generates the interface of a tab in the background.
    pub(crate) fn begin_generating(&self, tab: &str) -> Result<(), ApiError> {
        {
            let mut model = self.model();
            let tab = model.tab_mut(tab).ok_or_else(no_tab)?;
            if tab.activity == Activity::Generating {
                return Err(ApiError::conflict("The interface is being generated already."));
            }
            tab.activity = Activity::Generating;
        }
        self.show_tab(tab);
        let (studio, tab) = (self.clone(), tab.to_owned());
        tokio::spawn(async move {
            let outcome = studio.generate(&tab).await;
            studio.end_generating(&tab, outcome).await;
        });
        Ok(())
    }

    async fn generate(&self, tab: &str) -> Result<String, ApiError> {
        let spec = self.normalized(tab).await?;
        let wish = self.model().tab(tab).ok_or_else(no_tab)?.wish.clone();
        let mut params = json!({
            "spec": *spec,
            "format": "react",
            // The frame gives it the theme of the page.
            "theme": "auto",
            "options": {"layout": "default", "includeAuth": true, "pagination": true},
        });
        let (sender, chunks) = mpsc::unbounded_channel();
        tokio::spawn(self.clone().show_chunks(tab.to_owned(), chunks));
        // Without a wish no model is asked, so that no tool can be of use.
        let (result, tools) = match &wish {
            Some(wish) => {
                params["prompt"] = json!(wish);
                self.call_with_tools(tab, Method::Generate, params, Some(sender)).await?
            }
            None => {
                let called = self.cli.call(Method::Generate, params, Some(sender)).await;
                (called.map_err(|error| cli_error(&error))?, Vec::new())
            }
        };
        let code = text_of(&result, "code").ok_or_else(|| ApiError::internal("The CLI sent no code."))?;
        let description =
            text_of(&result, "description").unwrap_or_else(|| "Generated interface.".to_owned());
        let assumptions = texts_of(&result, "assumptions");
        let new = NewVersion {
            kind: VersionKind::Generation,
            code,
            description: description.clone(),
            prompt: wish,
            assumptions: assumptions.clone(),
            reverted_from: None,
            tools,
        };
        let version = self.add_version(tab, new).await?;
        let message = Message {
            role: Role::Assistant,
            text: description.clone(),
            assumptions,
            version: Some(version.number),
            ..Message::default()
        };
        self.change_tab(tab, |tab| Ok(tab.add_message(message))).await?;
        Ok(description)
    }

    async fn show_chunks(self, tab: String, mut chunks: mpsc::UnboundedReceiver<Chunk>) {
        let mut received = 0;
        while let Some(chunk) = chunks.recv().await {
            received = if chunk.index == 0 { chunk.text.len() } else { received + chunk.text.len() };
            self.publish(
                "progress",
                &json!({"tab": tab, "phase": "generating", "chunk": chunk.text, "received": received}),
            );
        }
    }

    async fn end_generating(&self, tab: &str, outcome: Result<String, ApiError>) {
        if let Err(error) = &outcome {
            self.log(Some(tab), EntryKind::Studio, Level::Error, &error.message, None);
        }
        let kept = self.change_tab(tab, |tab| {
            tab.activity = Activity::Idle;
            if let Err(error) = &outcome {
                tab.problem = Some(problem_of(error));
                tab.add_message(failed_message(error, None));
            }
            Ok(())
        });
        let _ = kept.await;
        self.run_next(tab);
    }

    /// Takes a message of the chat and decides what it is.
    pub(crate) async fn take_message(&self, tab: &str, input: MessageInput) -> Result<Message, ApiError> {
        let text = input.text.trim().to_owned();
        let has_interface = self.model().tab(tab).ok_or_else(no_tab)?.current.is_some();
        let is_specification = input.answer_to.is_none() && looks_like_specification(&text);
        if text.is_empty() || text.len() > LONGEST_MESSAGE && !is_specification {
            let most = LONGEST_MESSAGE / 1024;
            return Err(ApiError::invalid(format!("A message is not empty and at most {most} KiB long.")));
        }
        if is_specification {
            return self.take_pasted(tab, text).await;
        }
        let is_change = match input.intent {
            Intent::Change => true,
            Intent::Ask => false,
            Intent::Auto => input.answer_to.is_some() || has_interface && !reads_like_question(&text),
        };
        if is_change && !has_interface {
            return Err(ApiError::conflict("There is no interface to change yet.")
                .hint("Drop a specification first."));
        }
        if is_change {
            self.queue_change(tab, text, input.answer_to).await
        } else {
            self.ask(tab, text).await
        }
    }

    async fn take_pasted(&self, tab: &str, text: String) -> Result<Message, ApiError> {
        let shown: String = text.chars().take(200).collect();
        let added = self.add_user_message(tab, &shown, MessageStatus::Sent, None).await?;
        let set = self.set_specification(tab, SpecificationInput::of_text(text)).await;
        if let Err(error) = &set {
            let id = added.id.clone();
            self.change_tab(tab, |tab| {
                tab.add_message(failed_message(error, Some(id)));
                Ok(())
            })
            .await?;
        }
        Ok(added)
    }

    async fn add_user_message(
        &self,
        tab: &str,
        text: &str,
        status: MessageStatus,
        reply_to: Option<String>,
    ) -> Result<Message, ApiError> {
        let message = Message { text: text.to_owned(), status, reply_to, ..Message::default() };
        self.change_tab(tab, |tab| {
            let queued = tab.chat.iter().filter(|one| one.status == MessageStatus::Queued).count();
            if queued >= MOST_QUEUED {
                let message = format!("{MOST_QUEUED} changes wait already.");
                let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, "tooMany", message);
                return Err(error.hint("Wait until some are done."));
            }
            let id = tab.add_message(message);
            tab.message_mut(&id).cloned().ok_or_else(no_tab)
        })
        .await
    }

    async fn queue_change(
        &self,
        tab: &str,
        text: String,
        answer_to: Option<String>,
    ) -> Result<Message, ApiError> {
        if let Some(question) = &answer_to {
            self.change_tab(tab, |tab| match tab.message_mut(question) {
                Some(message) if message.is_question && message.answered.is_none() => {
                    message.answered = Some(text.clone());
                    Ok(())
                }
                Some(_) => Err(ApiError::conflict("This question was answered before.")),
                None => Err(ApiError::not_found("There is no such question.")),
            })
            .await?;
        }
        let added = self.add_user_message(tab, &text, MessageStatus::Queued, answer_to).await?;
        self.run_next(tab);
        Ok(added)
    }

    /// Takes a change back that has not begun.
    pub(crate) async fn cancel_message(&self, tab: &str, id: &str) -> Result<(), ApiError> {
        self.change_tab(tab, |tab| match tab.message_mut(id) {
            Some(message) if message.status == MessageStatus::Queued => {
                message.status = MessageStatus::Error;
                message.problem = Some(problem_of(&ApiError::conflict("You took it back before it began.")));
                Ok(())
            }
            Some(_) => Err(ApiError::conflict("It has begun already.")),
            None => Err(ApiError::not_found("There is no such message.")),
        })
        .await
    }

    /// Begins the oldest change that waits, unless the tab is busy.
    pub(crate) fn run_next(&self, tab: &str) {
        let next = {
            let mut model = self.model();
            let Some(tab) = model.tab_mut(tab).filter(|tab| tab.activity == Activity::Idle) else { return };
            let Some(message) = tab.chat.iter_mut().find(|one| one.status == MessageStatus::Queued) else {
                return;
            };
            message.status = MessageStatus::Pending;
            let id = message.id.clone();
            tab.activity = Activity::Customizing;
            id
        };
        self.show_tab(tab);
        let (studio, tab) = (self.clone(), tab.to_owned());
        tokio::spawn(async move {
            let outcome = studio.customize(&tab, &next).await;
            studio.end_change(&tab, &next, outcome).await;
        });
    }

    async fn customize(&self, tab: &str, id: &str) -> Result<Message, ApiError> {
        self.publish("progress", &json!({"tab": tab, "phase": "customizing", "chunk": null, "received": 0}));
        let spec = self.normalized(tab).await?;
        let (current, prompt, history, inherited) = {
            let model = self.model();
            let tab = model.tab(tab).ok_or_else(no_tab)?;
            let current =
                tab.current.ok_or_else(|| ApiError::conflict("There is no interface to change yet."))?;
            let wish = tab.chat.iter().find(|message| message.id == id).ok_or_else(no_tab)?;
            (current, wish.text.clone(), history_of(&tab.chat, wish), tab.tools_in_use().to_vec())
        };
        let code = self.code(tab, current).await?;
        let params = json!({"currentCode": code, "prompt": prompt, "spec": *spec, "history": history});
        let (result, used) = self.call_with_tools(tab, Method::Customize, params, None).await?;
        if result["clarificationNeeded"] == true {
            return Ok(Message {
                role: Role::Assistant,
                text: text_of(&result, "question").unwrap_or_else(|| "Which one do you mean?".to_owned()),
                options: texts_of(&result, "options"),
                is_question: true,
                reply_to: Some(id.to_owned()),
                ..Message::default()
            });
        }
        let code = text_of(&result, "code").ok_or_else(|| ApiError::internal("The CLI sent no code."))?;
        let description = text_of(&result, "description").unwrap_or_else(|| "Changed.".to_owned());
        let mut assumptions = texts_of(&result, "assumptions");
        assumptions.extend(used.iter().map(|used| format!("Used {} of {}.", used.tool, used.plugin)));
        let new = NewVersion {
            kind: VersionKind::Customization,
            code,
            description: description.clone(),
            prompt: Some(prompt),
            assumptions: assumptions.clone(),
            reverted_from: None,
            tools: merged(inherited, used),
        };
        let version = self.add_version(tab, new).await?;
        Ok(Message {
            role: Role::Assistant,
            text: description,
            assumptions,
            version: Some(version.number),
            reply_to: Some(id.to_owned()),
            ..Message::default()
        })
    }

    async fn end_change(&self, tab: &str, id: &str, outcome: Result<Message, ApiError>) {
        let kept = self.change_tab(tab, |tab| {
            tab.activity = Activity::Idle;
            if let Some(message) = tab.message_mut(id) {
                message.status = if outcome.is_ok() { MessageStatus::Sent } else { MessageStatus::Error };
            }
            tab.add_message(match outcome {
                Ok(message) => message,
                Err(error) => failed_message(&error, Some(id.to_owned())),
            });
            Ok(())
        });
        let _ = kept.await;
        self.run_next(tab);
    }

    /// A question that changes nothing; it waits for no change.
    async fn ask(&self, tab: &str, text: String) -> Result<Message, ApiError> {
        let added = self.add_user_message(tab, &text, MessageStatus::Pending, None).await?;
        let context = {
            let model = self.model();
            let tab = model.tab(tab).ok_or_else(no_tab)?;
            json!({
                "tabId": tab.id,
                "hasActiveSpec": tab.specification.is_some(),
                "hasActiveInterface": tab.current.is_some(),
            })
        };
        let (studio, tab, id) = (self.clone(), tab.to_owned(), added.id.clone());
        tokio::spawn(async move {
            let params = json!({"message": text, "context": context});
            let answer = studio.cli.call(Method::Chat, params, None).await;
            let kept = studio.change_tab(&tab, |tab| {
                if let Some(message) = tab.message_mut(&id) {
                    message.status = if answer.is_ok() { MessageStatus::Sent } else { MessageStatus::Error };
                }
                tab.add_message(match answer {
                    Ok(result) => Message {
                        role: Role::Assistant,
                        text: text_of(&result, "message").unwrap_or_default(),
                        options: texts_of(&result, "suggestions"),
                        reply_to: Some(id),
                        ..Message::default()
                    },
                    Err(error) => failed_message(&cli_error(&error), Some(id)),
                });
                Ok(())
            });
            let _ = kept.await;
        });
        Ok(added)
    }
}

/// What was said before a wish. A question that the wish answers stands last, after what it was about.
fn history_of(chat: &[Message], wish: &Message) -> Vec<Value> {
    let find = |id: &Option<String>| chat.iter().find(|message| Some(&message.id) == id.as_ref());
    let question = find(&wish.reply_to).filter(|message| message.is_question);
    let asked = question.and_then(|question| find(&question.reply_to));
    let is_apart =
        |message: &Message| [question, asked].into_iter().flatten().any(|other| other.id == message.id);
    let before: Vec<&Message> = chat
        .iter()
        .take_while(|message| message.id != wish.id)
        .filter(|message| {
            message.status == MessageStatus::Sent && message.problem.is_none() && !is_apart(message)
        })
        .collect();
    let first = before.len().saturating_sub(HISTORY);
    let turn = |message: &&Message| {
        let role = if message.role == Role::User { "user" } else { "assistant" };
        json!({"role": role, "content": message.text})
    };
    before[first..].iter().chain(asked.iter()).chain(question.iter()).map(turn).collect()
}

/// The tools of the version before, and those that were used now.
fn merged(mut tools: Vec<ToolUse>, used: Vec<ToolUse>) -> Vec<ToolUse> {
    for tool in used {
        if !tools.contains(&tool) {
            tools.push(tool);
        }
    }
    tools
}

fn failed_message(error: &ApiError, reply_to: Option<String>) -> Message {
    let alternatives = error.data.as_ref().map(|data| texts_of(&data["details"], "alternatives"));
    Message {
        role: Role::Assistant,
        text: error.message.clone(),
        status: MessageStatus::Error,
        options: alternatives.unwrap_or_default(),
        problem: Some(problem_of(error)),
        reply_to,
        ..Message::default()
    }
}

/// Whether a message asks about something, in place of asking for something.
fn reads_like_question(text: &str) -> bool {
    let words = ["what", "which", "how", "why", "who", "where", "when", "is", "are", "does", "do", "did"];
    let first = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    text.trim_end().ends_with('?') && words.contains(&first.as_str())
}

pub(crate) fn cli_error(error: &CliError) -> ApiError {
    let (status, hint) = match error.kind {
        CliErrorKind::Code(-32004) => (StatusCode::TOO_MANY_REQUESTS, "Wait a moment, then try again."),
        CliErrorKind::Code(-32002) => (StatusCode::UNPROCESSABLE_ENTITY, "Correct the specification."),
        CliErrorKind::Code(-32003) => {
            (StatusCode::PAYLOAD_TOO_LARGE, "Use a smaller specification or change.")
        }
        CliErrorKind::Code(_) => (StatusCode::UNPROCESSABLE_ENTITY, "Say it in other words, or try again."),
        CliErrorKind::TimedOut => (StatusCode::GATEWAY_TIMEOUT, "Try again, or make the request simpler."),
        CliErrorKind::Crashed => (StatusCode::BAD_GATEWAY, "Look at the console, then try again."),
        CliErrorKind::Unavailable => {
            (StatusCode::SERVICE_UNAVAILABLE, "Start the CLI again, then try again.")
        }
    };
    let error_data = json!({"code": error.code(), "details": error.data});
    ApiError::new(status, "cli", error.message.clone()).hint(hint).data(error_data)
}

fn text_of(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(str::to_owned)
}

fn texts_of(value: &Value, name: &str) -> Vec<String> {
    let list = value.get(name).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_wishes() {
        for text in ["What can you do?", "How many endpoints are there?", "is this live?"] {
            assert!(reads_like_question(text), "{text}");
        }
        for text in ["Can you add a search bar?", "hide the id column", "what a mess, use cards", ""] {
            assert!(!reads_like_question(text), "{text}");
        }
    }

    #[test]
    fn an_answer_has_the_wish_and_the_question_at_the_end_of_its_history() {
        let say = |id: &str, text: &str, reply_to: Option<&str>, is_question: bool| Message {
            id: id.to_owned(),
            text: text.to_owned(),
            role: if is_question { Role::Assistant } else { Role::User },
            is_question,
            reply_to: reply_to.map(str::to_owned),
            ..Message::default()
        };
        let chat = [
            say("m1", "add a search bar", None, false),
            say("m2", "To which table?", Some("m1"), true),
            say("m3", "use cards", None, false),
            say("m4", "Books", Some("m2"), false),
        ];
        let history = history_of(&chat, &chat[3]);
        let texts: Vec<_> = history.iter().map(|turn| turn["content"].as_str().unwrap()).collect();
        assert_eq!(texts, ["use cards", "add a search bar", "To which table?"]);
    }
}
