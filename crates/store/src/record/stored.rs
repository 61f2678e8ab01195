//! Parts of the vocabulary in their stored form, for messages between processes.

use domain::Failure;
use domain::ask::Answer;
use domain::command::SessionSettings;
use domain::event::Channel;
use domain::item::Part;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::parts::{ChannelV1, PartV1};
use super::{AnswerV1, FailureV1, SettingsV1};

/// A value that is written and read as a journal has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored<T>(pub T);

impl<T> From<T> for Stored<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

macro_rules! stored {
    ($($domain:ty => $form:ident),+ $(,)?) => {$(
        impl Serialize for Stored<$domain> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $form::from(&self.0).serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for Stored<$domain> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $form::deserialize(deserializer).map(|form| Self(form.into()))
            }
        }
    )+};
}

stored! {
    Answer => AnswerV1,
    Failure => FailureV1,
    Part => PartV1,
    SessionSettings => SettingsV1,
}

impl Serialize for Stored<Channel> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ChannelV1::from(self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Stored<Channel> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ChannelV1::deserialize(deserializer).map(|form| Self(form.into()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check<T>(value: T, form: Value)
    where
        T: Clone + PartialEq + std::fmt::Debug,
        Stored<T>: Serialize + serde::de::DeserializeOwned,
    {
        let stored = Stored(value);
        assert_eq!(serde_json::to_value(&stored).unwrap(), form);
        assert_eq!(serde_json::from_value::<Stored<T>>(form.clone()).unwrap(), stored, "from a value");
        assert_eq!(serde_json::from_str::<Stored<T>>(&form.to_string()).unwrap(), stored, "from a text");
    }

    #[test]
    fn values_between_processes_have_the_form_of_the_journal() {
        check(Answer::Allow { remember: true }, json!({"type": "allow", "remember": true}));
        let reason = Some("not \"now\"\n".to_owned());
        check(
            Answer::Deny { remember: false, reason: reason.clone() },
            json!({"type": "deny", "remember": false, "reason": reason}),
        );
        check(Answer::Form { data: json!({"a": [1]}) }, json!({"type": "form", "data": {"a": [1]}}));
        check(Answer::Cancelled, json!({"type": "cancelled"}));
        check(Part::text("ä"), json!({"type": "text", "text": "ä"}));
        check(Channel::ToolInput, json!("toolInput"));
        let settings = SessionSettings { model: Some("a/b".to_owned()), ..SessionSettings::default() };
        check(settings, json!({"model": "a/b"}));
        let failure = Failure::user("No.").hint("Ask again.");
        check(failure, json!({"kind": "user", "message": "No.", "hint": "Ask again."}));
    }
}
