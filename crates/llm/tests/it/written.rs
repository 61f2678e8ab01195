//! Requests whose history is kept as bytes: equal to requests that are written whole, whatever the chat did.

use domain::Part;
use domain::model::{Prompt, PromptEntry, WrittenHistory, WrittenPlace};
use llm::Api;
use llm::format::Target;
use serde_json::json;

use crate::support::{prompt, tool, user, with_target};

/// A chat that grows, is rolled back and changes, with a key per entry as the engine gives them.
struct Chat {
    seed: u64,
    next_key: u64,
    entries: Vec<(u64, PromptEntry)>,
    place: WrittenPlace,
    /// The prompt without its entries.
    frame: Prompt,
}

impl Chat {
    fn new(seed: u64) -> Self {
        let (entries, place) = (Vec::new(), WrittenPlace::default());
        Self { seed, next_key: 0, entries, place, frame: prompt("") }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % below
    }

    fn push(&mut self, entry: PromptEntry) {
        self.next_key += 1;
        self.entries.push((self.next_key, entry));
    }

    fn step(&mut self) {
        let number = self.next_key;
        match self.random(40) {
            0 => self.frame.tools = vec![tool("eca", &format!("tool_{number}"))].into(),
            1 => self.frame.variant = Some(["low", "high"][self.random(2) as usize].to_owned()),
            2 => self.frame.system = vec![format!("System {number}.").into()],
            3 => self.frame.output_schema = Some(json!({"type": "object", "title": number})),
            4 => (self.frame.output_schema, self.frame.max_output) = (None, Some(1000 + number)),
            _ => {}
        }
        match self.random(12) {
            0 if self.entries.len() > 40 => {
                self.entries.truncate(self.entries.len() - 1 - number as usize % 7)
            }
            0 => self.entries.truncate(self.entries.len() / 2),
            1 => self.push(PromptEntry::Reasoning { text: "Hm.".into(), provider: None }),
            2 => self.push(PromptEntry::Agent { text: " ".into(), provider: None }),
            3 | 4 => {
                self.push(PromptEntry::Agent { text: format!("an \"answer\" {number}"), provider: None })
            }
            5..=7 => self.push_calls(number),
            8 => self.push(PromptEntry::User { parts: Vec::new() }),
            9 => {
                let image = Part::Image { mime: "image/png".into(), data: "aGk=".into() };
                self.push(PromptEntry::User { parts: vec![Part::text("look"), image] });
            }
            _ => self.push(user(&format!("message {number}"))),
        }
    }

    fn push_calls(&mut self, number: u64) {
        let (name, count) = ("eca__read_file".to_owned(), 1 + self.random(3));
        let id = |at| format!("c{number}-{at}");
        for at in 0..count {
            let input = json!({"path": id(at)});
            self.push(PromptEntry::Call { call_id: id(at), name: name.clone(), input, provider: None });
        }
        // A result may be missing.
        for at in self.random(4).min(1)..count {
            let parts = vec![Part::text(format!("text of {}", id(at)))];
            self.push(PromptEntry::Result { call_id: id(at), name: name.clone(), parts, error: false });
        }
    }

    fn prompt(&self) -> Prompt {
        let (keys, entries) = self.entries.iter().cloned().unzip();
        let written = Some(WrittenHistory { keys, place: self.place.clone() });
        Prompt { entries, written, ..self.frame.clone() }
    }
}

fn bytes(api: Api, prompt: &Prompt, target: &Target) -> String {
    String::from_utf8(api.encode_bytes(prompt, target, "", |prompt| api.encode(prompt, target))).unwrap()
}

#[test]
fn kept_bytes_equal_a_body_that_is_written_whole() {
    let mut kept = 0;
    for api in Api::ALL {
        for seed in 0..8 {
            let mut chat = Chat::new(seed);
            for _ in 0..60 {
                chat.step();
                let prompt = chat.prompt();
                with_target(api, "fake/model", |target| {
                    assert_eq!(
                        bytes(api, &prompt, target),
                        api.encode(&prompt, target).to_string(),
                        "{api:?}"
                    );
                });
                kept += usize::from(chat.place.lock().unwrap().is_some());
            }
        }
    }
    assert!(kept > 400, "{kept}: the chats did not use what was kept");
}

/// A chat that is opened again is written whole, in parts.
#[test]
fn a_long_chat_is_written_in_parts() {
    for api in Api::ALL {
        let mut chat = Chat::new(11);
        for _ in 0..1500 {
            chat.step();
        }
        let prompt = chat.prompt();
        assert!(prompt.entries.len() > 600, "{}", prompt.entries.len());
        with_target(api, "fake/model", |target| {
            assert_eq!(bytes(api, &prompt, target), api.encode(&prompt, target).to_string(), "{api:?}");
        });
    }
}

#[test]
fn another_model_is_sent_a_body_of_its_own() {
    let mut chat = Chat::new(7);
    for _ in 0..40 {
        chat.step();
    }
    let prompt = chat.prompt();
    for (api, id) in [(Api::OpenAiChat, "a/one"), (Api::Anthropic, "b/two"), (Api::Anthropic, "c/three")] {
        with_target(api, id, |target| {
            assert_eq!(bytes(api, &prompt, target), api.encode(&prompt, target).to_string(), "{id}");
        });
    }
}

#[test]
fn marks_on_far_messages_are_not_kept() {
    let mut chat = Chat::new(3);
    for _ in 0..80 {
        chat.step();
        let prompt = chat.prompt();
        with_target(Api::OpenAiChat, "fake/model", |target| {
            let mut target = target.clone();
            target.dialect.cache_marks = true;
            let whole = Api::OpenAiChat.encode(&prompt, &target).to_string();
            assert_eq!(bytes(Api::OpenAiChat, &prompt, &target), whole);
        });
    }
}
