//! Asks as the protocol's requests to a person, and the answers back. Pure.
//!
//! Invariant: every response of a client becomes an answer; an unreadable response never allows anything.

use domain::{Answer, Ask, AskKind, Failure, SessionId};
use serde_json::Value;

use crate::wire::{AnswerForm, Question, acp};

const ALLOW_ONCE: &str = "allow_once";
const ALLOW_ALWAYS: &str = "allow_always";
const REJECT_ONCE: &str = "reject_once";
const REJECT_ALWAYS: &str = "reject_always";
/// Fields of the form that a question becomes.
const CHOICE: &str = "choice";
const ANSWER: &str = "answer";
/// Longest name of an option, in characters. What a longer one would say is in the content of the call.
const NAME: usize = 160;

/// `fields`: the fields of the waiting tool call that the client shows. `addresses`: the client sends users to addresses.
pub(crate) fn question(
    session: &SessionId,
    ask: &Ask,
    fields: Option<acp::ToolCallUpdateFields>,
    addresses: bool,
) -> Result<Question, Failure> {
    match &ask.kind {
        AskKind::Approval { reason, keys } => {
            let id = ask.item.map_or_else(|| ask.id.to_string(), |item| item.to_string());
            let mut fields = fields.unwrap_or_default();
            let remembered = remembered_name(keys);
            // The person should know why it is asked each time, and what a long list of commands is.
            let note = match &remembered {
                None => Some(reason.clone()),
                Some((_, list)) => list.clone(),
            };
            if let Some(note) = note {
                let text = acp::ContentBlock::from(note.as_str());
                fields.content.get_or_insert_default().push(acp::ToolCallContent::from(text));
            }
            let call = acp::ToolCallUpdate::new(id, fields);
            let choices = choices(remembered.map(|(name, _)| name));
            let request = acp::RequestPermissionRequest::new(session.0.clone(), call, choices);
            Ok(Question::Permission(request))
        }
        AskKind::Question { text, options, url: Some(url), .. } if addresses && !options.is_empty() => {
            let id = acp::ElicitationId::new(format!("{}-{}", session.0, ask.id));
            let mode = acp::ElicitationUrlMode::new(scope(session, ask), id, url.clone());
            let request = acp::CreateElicitationRequest::new(acp::ElicitationMode::Url(mode), text.clone());
            Ok(Question::Elicitation { request, answer: AnswerForm::Opened(options[0].label.clone()) })
        }
        AskKind::Question { text, options, freeform, .. } => {
            let labels: Vec<&str> = options.iter().map(|choice| choice.label.as_str()).collect();
            let mode = acp::ElicitationFormMode::new(scope(session, ask), form(&labels, *freeform));
            let request = acp::CreateElicitationRequest::new(acp::ElicitationMode::Form(mode), text.clone());
            Ok(Question::Elicitation { request, answer: AnswerForm::Field })
        }
        AskKind::Form { text, schema } => {
            let schema: acp::ElicitationSchema = serde_json::from_value(schema.clone())
                .map_err(|error| Failure::user(format!("The form cannot be shown: {error}.")))?;
            let mode = acp::ElicitationFormMode::new(scope(session, ask), schema);
            let request = acp::CreateElicitationRequest::new(acp::ElicitationMode::Form(mode), text.clone());
            Ok(Question::Elicitation { request, answer: AnswerForm::Data })
        }
    }
}

/// How the option is named that remembers these keys, and the list of them where the name cannot hold it. `None`: the
/// engine would remember nothing, so "for this session" would be a promise that it cannot keep.
fn remembered_name(keys: &[String]) -> Option<(String, Option<String>)> {
    if keys.is_empty() {
        return None;
    }
    let whole = format!("Allow {} for this session", keys.join(", "));
    if whole.chars().count() <= NAME {
        return Some((whole, None));
    }
    let list: Vec<String> = keys.iter().map(|key| format!("    {key}")).collect();
    let list = format!("“For this session” would remember exactly this:\n\n{}", list.join("\n"));
    Some((format!("Allow the {} listed above for this session", keys.len()), Some(list)))
}

/// `remembered`: the name of the option that remembers.
fn choices(remembered: Option<String>) -> Vec<acp::PermissionOption> {
    use acp::PermissionOptionKind as Kind;
    let mut choices = vec![acp::PermissionOption::new(ALLOW_ONCE, "Allow once", Kind::AllowOnce)];
    choices.extend(remembered.map(|name| acp::PermissionOption::new(ALLOW_ALWAYS, name, Kind::AllowAlways)));
    choices.push(acp::PermissionOption::new(REJECT_ONCE, "Reject", Kind::RejectOnce));
    let every = "Reject every call of this tool for this session";
    choices.push(acp::PermissionOption::new(REJECT_ALWAYS, every, Kind::RejectAlways));
    choices
}

fn scope(session: &SessionId, ask: &Ask) -> acp::ElicitationSessionScope {
    let call = ask.item.map(|item| acp::ToolCallId::new(item.to_string()));
    acp::ElicitationSessionScope::new(session.0.clone()).tool_call_id(call)
}

fn form(labels: &[&str], freeform: bool) -> acp::ElicitationSchema {
    let choice = acp::StringPropertySchema::new()
        .title("Choice".to_owned())
        .enum_values(labels.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>());
    let answer = |title: &str| acp::StringPropertySchema::new().title(title.to_owned());
    let schema = acp::ElicitationSchema::new();
    match (labels.is_empty(), freeform) {
        (false, false) => schema.property(CHOICE, choice, true),
        (false, true) => {
            schema.property(CHOICE, choice, false).property(ANSWER, answer("Or in your own words"), false)
        }
        (true, _) => schema.property(ANSWER, answer("Answer"), true),
    }
}

/// `None`: there was no answer, or none that can be read.
pub(crate) fn permission(response: Option<acp::RequestPermissionResponse>) -> Answer {
    let Some(response) = response else {
        let reason = "The editor could not ask the user, so the call was not run.".to_owned();
        return Answer::Deny { remember: false, reason: Some(reason) };
    };
    let acp::RequestPermissionOutcome::Selected(selected) = response.outcome else {
        return Answer::Cancelled;
    };
    match selected.option_id.0.as_ref() {
        ALLOW_ONCE => Answer::Allow { remember: false },
        ALLOW_ALWAYS => Answer::Allow { remember: true },
        REJECT_ALWAYS => Answer::Deny { remember: true, reason: None },
        _ => Answer::Deny { remember: false, reason: None },
    }
}

/// The answer to an elicitation; `None`: there was no response, or none that can be read.
pub(crate) fn elicitation(response: Option<acp::CreateElicitationResponse>, form: AnswerForm) -> Answer {
    let accepted = match response.map(|response| response.action) {
        Some(acp::ElicitationAction::Accept(accepted)) => accepted.content.unwrap_or_default(),
        Some(acp::ElicitationAction::Decline) if form != AnswerForm::Field => {
            return Answer::Deny { remember: false, reason: None };
        }
        _ => return Answer::Cancelled,
    };
    let field = |name: &str| match accepted.get(name).map(serde_json::to_value) {
        Some(Ok(Value::String(text))) if !text.trim().is_empty() => Some(text),
        _ => None,
    };
    match form {
        AnswerForm::Opened(text) => Answer::Text { text },
        AnswerForm::Data => match serde_json::to_value(accepted) {
            Ok(data) => Answer::Form { data },
            Err(_) => Answer::Cancelled,
        },
        AnswerForm::Field => {
            field(ANSWER).or_else(|| field(CHOICE)).map_or(Answer::Cancelled, |text| Answer::Text { text })
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::ask::Choice;
    use domain::{AskId, ItemId, TurnId};
    use serde_json::json;

    use super::*;

    fn asked(kind: AskKind) -> Question {
        let ask = Ask { id: AskId(1), turn: TurnId(1), item: Some(ItemId(4)), kind };
        question(&SessionId::new("s"), &ask, None, true).unwrap()
    }

    #[test]
    fn the_four_options_are_the_four_answers() {
        let Question::Permission(request) =
            asked(AskKind::Approval { reason: "r".into(), keys: vec!["git push".into()] })
        else {
            panic!("an approval is a permission request")
        };
        let names: Vec<&str> = request.options.iter().map(|option| option.name.as_str()).collect();
        assert_eq!(names[1], "Allow git push for this session");
        assert_eq!(request.tool_call.fields.content, None);
        let answers: Vec<Answer> = request
            .options
            .iter()
            .map(|option| {
                let selected = json!({"outcome": {"outcome": "selected", "optionId": option.option_id}});
                permission(Some(serde_json::from_value(selected).unwrap()))
            })
            .collect();
        let deny = |remember| Answer::Deny { remember, reason: None };
        assert_eq!(
            answers,
            [Answer::Allow { remember: false }, Answer::Allow { remember: true }, deny(false), deny(true)]
        );
        let cancelled = serde_json::from_value(json!({"outcome": {"outcome": "cancelled"}})).unwrap();
        assert_eq!(permission(Some(cancelled)), Answer::Cancelled);
        assert!(matches!(permission(None), Answer::Deny { remember: false, reason: Some(_) }));
        let odd = json!({"outcome": {"outcome": "selected", "optionId": "sure"}});
        assert_eq!(permission(Some(serde_json::from_value(odd).unwrap())), deny(false));
    }

    #[test]
    fn a_long_list_of_what_is_remembered_stands_in_the_content() {
        let keys: Vec<String> = (0..3).map(|at| format!("cp {} {at}", "a".repeat(80))).collect();
        let Question::Permission(request) =
            asked(AskKind::Approval { reason: "r".into(), keys: keys.clone() })
        else {
            panic!("an approval is a permission request")
        };
        assert_eq!(request.options[1].name, "Allow the 3 listed above for this session");
        let content = serde_json::to_string(&request.tool_call.fields.content).unwrap();
        assert!(keys.iter().all(|key| content.contains(key.as_str())), "{content}");
    }

    #[test]
    fn a_question_is_a_form_of_its_choices() {
        let options = vec![
            Choice { label: "red".into(), description: None },
            Choice { label: "blue".into(), description: None },
        ];
        let check = |freeform: bool, options: &[Choice], expected: &[&str], required: Option<&str>| {
            let (text, options) = ("Which?".into(), options.to_vec());
            let kind = AskKind::Question { text, options, freeform, url: None };
            let Question::Elicitation { request, answer: AnswerForm::Field } = asked(kind) else {
                panic!("a form")
            };
            let value = serde_json::to_value(&request).unwrap();
            assert_eq!(value["message"], "Which?");
            assert_eq!(value["toolCallId"], "item-4");
            let schema = &value["requestedSchema"];
            let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
            assert_eq!(names, expected);
            assert_eq!(schema["required"].get(0).and_then(Value::as_str), required);
        };
        check(false, &options, &["choice"], Some("choice"));
        check(true, &options, &["answer", "choice"], None);
        check(true, &[], &["answer"], Some("answer"));
    }

    #[test]
    fn answers_of_forms_are_read() {
        let read = |response: Value, is_form: bool| {
            let form = if is_form { AnswerForm::Data } else { AnswerForm::Field };
            elicitation(serde_json::from_value(response).ok(), form)
        };
        let text = |text: &str| Answer::Text { text: text.into() };
        let accept = |content: Value| json!({"action": "accept", "content": content});
        assert_eq!(read(accept(json!({"choice": "red"})), false), text("red"));
        assert_eq!(read(accept(json!({"choice": "red", "answer": "green"})), false), text("green"));
        assert_eq!(read(accept(json!({"choice": "red", "answer": " "})), false), text("red"));
        assert_eq!(read(accept(json!({})), false), Answer::Cancelled);
        assert_eq!(read(accept(json!({"n": 3})), true), Answer::Form { data: json!({"n": 3}) });
        let decline = json!({"action": "decline"});
        assert_eq!(read(decline.clone(), true), Answer::Deny { remember: false, reason: None });
        for no in [decline, json!({"action": "cancel"}), json!({"action": "_later"}), json!(7)] {
            assert_eq!(read(no, false), Answer::Cancelled);
        }
        assert_eq!(read(json!({"action": "cancel"}), true), Answer::Cancelled);
    }

    #[test]
    fn an_address_is_an_elicitation_of_its_own_kind() {
        let opened = Choice { label: "I have opened it".into(), description: None };
        let url = "https://id.example.com/a";
        let kind = AskKind::Question {
            text: format!("Open {url}"),
            options: vec![opened],
            freeform: false,
            url: Some(url.into()),
        };
        let ask = Ask { id: AskId(7), turn: TurnId(1), item: Some(ItemId(4)), kind };
        let ask_with = |addresses| question(&SessionId::new("s"), &ask, None, addresses).unwrap();
        let Question::Elicitation { request, answer } = ask_with(true) else { panic!("an elicitation") };
        let value = serde_json::to_value(&request).unwrap();
        assert_eq!((&value["mode"], &value["url"]), (&json!("url"), &json!(url)), "{value}");
        assert!(value["elicitationId"].as_str().is_some_and(|id| id.contains('7')), "{value}");
        let read = |action: &str| {
            elicitation(serde_json::from_value(json!({"action": action})).ok(), answer.clone())
        };
        assert_eq!(read("accept"), Answer::Text { text: "I have opened it".into() });
        assert_eq!(read("decline"), Answer::Deny { remember: false, reason: None });
        assert_eq!(read("cancel"), Answer::Cancelled);
        let Question::Elicitation { answer: AnswerForm::Field, .. } = ask_with(false) else {
            panic!("a form, where the client knows no addresses")
        };
    }
}
