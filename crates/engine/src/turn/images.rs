//! Images: of a prompt, as contexts; those that a provider refuses: said once, remembered for the chat and its model, not
//! sent again.
//!
//! Must not know providers. Invariant: the history keeps its images; only what the model is sent loses them.

use domain::command::Context;
use domain::event::Fact;
use domain::item::{ItemKind, Part};
use domain::model::{Prompt, PromptEntry};

use super::answer::StepPosition;
use crate::session::Session;

/// The kind of the store's records that say so.
const REFUSALS: &str = "images-refused";

/// Takes the place of an image.
const REMOVED: &str = "(An image was here; the provider refused it.)";

fn key(session: &Session, model: &str) -> String {
    format!("{} {model}", session.id)
}

/// Whether this model has refused images of this chat.
pub(super) async fn are_refused(session: &Session, model: &str) -> bool {
    // A chat without images needs no look at the store.
    if !session.state().items().iter().any(|item| has_image(&item.kind)) {
        return false;
    }
    session.store.get(REFUSALS, &key(session, model)).await.is_ok_and(|known| known.is_some())
}

/// Says it in the chat and keeps it.
pub(super) async fn remember_refusal(session: &Session, position: StepPosition, model: &str) {
    let text =
        format!("{model} refused the images of this chat. It is sent their places without them from now on.");
    let item = session.new_item(position.turn, position.step, ItemKind::SystemText { text });
    session.commit(vec![Fact::ItemEnded { item }]);
    if let Err(failure) = session.store.put(REFUSALS, &key(session, model), "1".to_owned()).await {
        tracing::warn!(%failure, "the refusal of images could not be kept");
    }
}

fn has_image(kind: &ItemKind) -> bool {
    let is_image = |part: &Part| matches!(part, Part::Image { .. });
    match kind {
        ItemKind::UserMessage { parts, .. } | ItemKind::Compaction { kept: parts, .. } => {
            parts.iter().any(is_image)
        }
        ItemKind::ToolCall(call) => call.result.iter().any(is_image),
        ItemKind::AgentMessage { .. }
        | ItemKind::Reasoning { .. }
        | ItemKind::Citation { .. }
        | ItemKind::Command { .. }
        | ItemKind::SystemText { .. }
        | ItemKind::Hook(_)
        | ItemKind::Note(_)
        | ItemKind::Flag { .. } => false,
    }
}

/// Images of a prompt as contexts, which are made as small as models take them.
pub(super) fn as_contexts(parts: Vec<Part>, contexts: Vec<Context>) -> (Vec<Part>, Vec<Context>) {
    let (mut kept, mut all) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Image { mime, data } => all.push(Context::Image { mime, data }),
            Part::Text { .. } => kept.push(part),
        }
    }
    all.extend(contexts);
    (kept, all)
}

/// The parts of a message with each image once: a file may be attached and named in the text.
pub(super) fn each_once(parts: impl Iterator<Item = Part>) -> Vec<Part> {
    let mut kept: Vec<Part> = Vec::new();
    for part in parts {
        if !matches!(part, Part::Image { .. }) || !kept.contains(&part) {
            kept.push(part);
        }
    }
    kept
}

/// Puts a text in the place of each image.
pub(super) fn remove(prompt: &mut Prompt) {
    // The keys speak of entries with their images.
    prompt.written = None;
    for entry in &mut prompt.entries {
        let (PromptEntry::User { parts } | PromptEntry::Result { parts, .. }) = entry else { continue };
        for part in parts.iter_mut().filter(|part| matches!(part, Part::Image { .. })) {
            *part = Part::text(REMOVED);
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::model::WrittenHistory;

    use super::*;

    #[test]
    fn an_image_that_is_attached_twice_is_sent_once() {
        let image = |data: &str| Part::Image { mime: "image/png".into(), data: data.into() };
        let parts = [image("A"), Part::text("x"), image("A"), image("B"), Part::text("x")];
        let expected = [image("A"), Part::text("x"), image("B"), Part::text("x")];
        assert_eq!(each_once(parts.into_iter()), expected);
    }

    #[test]
    fn only_images_are_taken_out_and_nothing_written_before_is_used_again() {
        let image = || Part::Image { mime: "image/png".into(), data: "DATA".into() };
        let result = PromptEntry::Result {
            call_id: "1".into(),
            name: "look".into(),
            parts: vec![image(), Part::text("a cat")],
            error: false,
        };
        let user = PromptEntry::User { parts: vec![Part::text("see"), image()] };
        let agent = PromptEntry::Agent { text: "yes".into(), provider: None };
        let mut prompt = Prompt {
            entries: vec![user, agent.clone(), result],
            written: Some(WrittenHistory::default()),
            ..Prompt::default()
        };
        remove(&mut prompt);
        assert!(prompt.written.is_none());
        let parts = |entry: &PromptEntry| match entry {
            PromptEntry::User { parts } | PromptEntry::Result { parts, .. } => parts.clone(),
            PromptEntry::Agent { .. } | PromptEntry::Reasoning { .. } | PromptEntry::Call { .. } => {
                Vec::new()
            }
        };
        assert_eq!(parts(&prompt.entries[0]), [Part::text("see"), Part::text(REMOVED)]);
        assert_eq!(prompt.entries[1], agent);
        assert_eq!(parts(&prompt.entries[2]), [Part::text(REMOVED), Part::text("a cat")]);
        assert!(has_image(&ItemKind::UserMessage { text: String::new(), parts: vec![image()] }));
        assert!(!has_image(&ItemKind::SystemText { text: "image".into() }));
    }
}
