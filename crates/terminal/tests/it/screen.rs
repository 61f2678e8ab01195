//! The screen without a terminal: events and keys in, text and effects out.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use domain::ask::{Ask, AskKind};
use domain::command::{Catalog, SessionSettings};
use domain::event::{Channel, EventBody, Fact, ItemDelta, Level, Notice, Recorded, SessionUsage};
use domain::model::Tokens;
use domain::tool_call::{Details, FileChange, Origin, ToolCall, ToolState};
use domain::{Answer, AskId, Event, Item, ItemId, ItemKind, Outcome, SessionId, TurnId};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use serde_json::{Value, json};
use terminal::Palette;
use terminal::chat::draw::draw;
use terminal::chat::screen::{Effect, Screen, Update};
use terminal::chat::theme::Theme;

pub(crate) struct Bench {
    pub(crate) screen: Screen,
    number: u64,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(Palette::Plain)
    }

    pub(crate) fn with(palette: Palette) -> Self {
        let theme = Theme::new(palette);
        let mut screen = Screen::new(theme, vec!["/w".into()], SessionSettings::default(), Instant::now(), 0);
        screen.session = Some(SessionId::new("s"));
        screen.focused = Some(true);
        screen.apply_update(Update::Catalog(Catalog {
            default_model: Some("fake/m1".into()),
            default_behavior: "agent".into(),
            behaviors: vec!["agent".into(), "plan".into()],
            ..Catalog::default()
        }));
        Self { screen, number: 0 }
    }

    /// As it happens.
    pub(crate) fn fact(&mut self, fact: Fact) {
        self.replayed(fact);
        self.screen.finish_replay();
    }

    /// Out of the journal, with more to come.
    pub(crate) fn replayed(&mut self, fact: Fact) {
        self.number += 1;
        let recorded = Arc::new(Recorded { number: self.number, at: 0, fact });
        self.screen.handle_event(&Event::fact(SessionId::new("s"), recorded));
    }

    pub(crate) fn started(&mut self) {
        self.fact(Fact::TurnStarted { turn: TurnId(1), model: "fake/m1".into() });
    }

    pub(crate) fn delta(&mut self, item: u64, offset: u64, text: &str) {
        let delta = ItemDelta { item: ItemId(item), channel: Channel::Text, offset, text: text.into() };
        self.screen
            .handle_event(&Event { session: Some(SessionId::new("s")), body: EventBody::Delta(delta) });
    }

    pub(crate) fn key(&mut self, code: KeyCode) {
        self.screen.handle_key(KeyEvent::new(code, KeyModifiers::NONE));
    }

    pub(crate) fn text(&mut self, text: &str) {
        text.chars().for_each(|character| self.key(KeyCode::Char(character)));
    }

    pub(crate) fn later(&mut self, time: Duration) {
        self.screen.now += time;
    }

    /// What is on a screen of this size.
    pub(crate) fn seen(&mut self, columns: u16, rows: u16) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
        draw(&mut self.screen, &mut buffer);
        let cells = buffer.content().chunks(columns.max(1).into());
        let lines = cells.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>());
        lines.map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }

    /// Effects other than completion requests.
    pub(crate) fn effects(&mut self) -> Vec<Effect> {
        let mut effects = self.screen.take_effects();
        effects.retain(|effect| !matches!(effect, Effect::Commands { .. } | Effect::Contexts { .. }));
        effects
    }
}

fn item(id: u64, kind: ItemKind) -> Item {
    Item { id: ItemId(id), turn: TurnId(1), step: 0, parent: None, kind }
}

fn said(text: &str) -> ItemKind {
    ItemKind::AgentMessage { text: text.into(), interrupted: false, provider: None }
}

fn user(text: &str) -> ItemKind {
    ItemKind::UserMessage { text: text.into(), parts: Vec::new() }
}

fn call(state: ToolState) -> ItemKind {
    ItemKind::ToolCall(Box::new(ToolCall {
        call_id: "c".into(),
        name: "edit_file".into(),
        server: "eca".into(),
        origin: Origin::Native,
        input_text: String::new(),
        input: None,
        state,
        summary: "Editing a.txt\x1b]0;evil\x07".into(),
        details: Some(Details::FileChange(FileChange {
            path: "a.txt".into(),
            diff: "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\x1b[2J\n".into(),
            lines_added: 1,
            lines_removed: 1,
            old_text: None,
            new_text: None,
        })),
        manual_approval: true,
        live_output: String::new(),
        result: Vec::new(),
        error: false,
        millis: 0,
        locations: Vec::new(),
        provider: None,
    }))
}

fn approval(id: u64, item: u64) -> Fact {
    let kind = AskKind::Approval { reason: "It changes a file.".into(), keys: Vec::new() };
    Fact::AskRaised { ask: Ask { id: AskId(id), turn: TurnId(1), item: Some(ItemId(item)), kind } }
}

/// Deltas, the journal and the end tell the same text; it is shown once, however they overlap.
#[test]
fn an_answer_is_shown_once() {
    let mut bench = Bench::new();
    bench.started();
    bench.fact(Fact::ItemStarted { item: item(1, said("")) });
    bench.delta(1, 0, "Hello ");
    bench.delta(1, 6, "wor");
    bench.delta(1, 0, "Hello wor");
    bench.fact(Fact::ItemGrew {
        item: ItemId(1),
        channel: Channel::Text,
        offset: 0,
        text: "Hello world".into(),
    });
    bench.delta(1, 400, "from the future");
    let seen = bench.seen(40, 10);
    assert!(seen.contains("Hello world") && !seen.contains("future"), "{seen}");
    bench.fact(Fact::ItemEnded { item: item(1, said("Hello world, whole.")) });
    let seen = bench.seen(40, 10);
    assert_eq!(seen.matches("Hello").count(), 1, "{seen}");
    assert!(seen.contains("Hello world, whole."), "{seen}");
}

/// A growing text looks the same at its end, whichever way it came.
#[test]
fn a_streamed_answer_looks_like_a_loaded_one() {
    let text = "# One\n\nSome text with `code`.\n\n- a\n- b\n\n  more of b\n\n```rust\nfn x() {}\n\nfn y() {}\n```\n\n\
        | a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted\n> twice\n\nThe end.";
    let mut loaded = Bench::new();
    loaded.fact(Fact::ItemEnded { item: item(1, said(text)) });
    let expected = loaded.seen(60, 40);
    for step in [1, 3, 7, 50] {
        let mut bench = Bench::new();
        bench.fact(Fact::ItemStarted { item: item(1, said("")) });
        for (at, piece) in text.as_bytes().chunks(step).enumerate() {
            bench.delta(1, (at * step) as u64, std::str::from_utf8(piece).expect("ASCII"));
            bench.seen(60, 40);
        }
        assert_eq!(bench.seen(60, 40), expected, "{step} bytes at a time");
    }
}

#[test]
fn nothing_a_terminal_obeys_is_drawn() {
    let mut bench = Bench::new();
    let evil = "a\x1b[2Jb\x1b]0;t\x07c\u{9b}d\u{202e}e\x08";
    bench.fact(Fact::ItemEnded { item: item(1, user(evil)) });
    bench.fact(Fact::ItemEnded { item: item(2, said(evil)) });
    bench.fact(Fact::ItemEnded { item: item(3, call(ToolState::Waiting { ask: AskId(1) })) });
    bench.fact(approval(1, 3));
    bench.fact(Fact::SessionChanged {
        change: SessionSettings { title: Some(evil.into()), ..SessionSettings::default() },
    });
    bench.screen.handle_paste(evil);
    let seen = bench.seen(80, 30);
    assert!(seen.chars().all(|c| c == '\n' || (!c.is_control() && c != '\u{202e}')), "{seen:?}");
    assert!(!seen.contains("evil") && !seen.contains("[2J"), "{seen}");
}

#[test]
fn one_key_answers_once_it_can_be_read() {
    for (key, answer) in [
        ('y', Answer::Allow { remember: false }),
        ('a', Answer::Allow { remember: true }),
        ('n', Answer::Deny { remember: false, reason: None }),
    ] {
        let mut bench = Bench::new();
        bench.started();
        bench.fact(Fact::ItemStarted { item: item(1, call(ToolState::Waiting { ask: AskId(7) })) });
        bench.fact(approval(7, 1));
        let seen = bench.seen(80, 24);
        assert!(seen.contains("-old") && seen.contains("+new"), "what is approved is seen:\n{seen}");
        bench.later(Duration::from_millis(500));
        assert!(bench.seen(80, 24).contains("? explains"));
        bench.key(KeyCode::Char(key));
        assert_eq!(bench.effects(), [Effect::Answer { ask: AskId(7), answer }]);
        assert!(!bench.seen(80, 24).contains("? explains"));
    }
}

#[test]
fn a_key_on_its_way_answers_nothing() {
    let mut bench = Bench::new();
    bench.started();
    bench.fact(Fact::ItemStarted { item: item(1, call(ToolState::Waiting { ask: AskId(7) })) });
    bench.fact(approval(7, 1));
    bench.later(Duration::from_millis(100));
    bench.key(KeyCode::Char('y'));
    bench.later(Duration::from_secs(5));
    bench.key(KeyCode::Char('y'));
    assert_eq!(bench.effects(), []);
    assert_eq!(bench.screen.input.text(), "yy");
}

/// A sentence that is written while a question waits is no answer, whatever letters it has.
#[test]
fn a_sentence_answers_nothing() {
    let mut bench = Bench::new();
    bench.started();
    bench.fact(Fact::ItemStarted { item: item(1, call(ToolState::Waiting { ask: AskId(7) })) });
    bench.fact(approval(7, 1));
    bench.later(Duration::from_millis(500));
    "Can you say why?".chars().for_each(|letter| bench.key(KeyCode::Char(letter)));
    assert_eq!(bench.effects(), []);
    assert_eq!(bench.screen.input.text(), "Can you say why?");
    assert!(bench.seen(80, 24).contains("Tab: answer"), "{}", bench.seen(80, 24));
    bench.key(KeyCode::Tab);
    bench.key(KeyCode::Char('n'));
    let answer = Answer::Deny { remember: false, reason: None };
    assert_eq!(bench.effects(), [Effect::Answer { ask: AskId(7), answer }]);
}

#[test]
fn a_prompt_breaks_between_words_and_code_keeps_its_spaces() {
    let mut bench = Bench::new();
    let prompt = "please look at the parser and its tests\n    if a  then b";
    bench.fact(Fact::ItemEnded { item: item(1, user(prompt)) });
    let seen = bench.seen(30, 24);
    assert!(seen.contains("› please look at the parser\n  and its tests\n      if a  then b"), "{seen}");
}

fn form(id: u64, schema: Value) -> Fact {
    let kind = AskKind::Form { text: "The MCP server files asks: Where\x1b[2J to?".into(), schema };
    Fact::AskRaised { ask: Ask { id: AskId(id), turn: TurnId(1), item: Some(ItemId(1)), kind } }
}

/// Every kind of field, by the keys a person would press; what is wrong is said and not sent.
#[test]
fn a_form_of_a_server_is_filled_in() {
    let mut bench = Bench::new();
    bench.started();
    bench.fact(form(
        7,
        json!({
            "type": "object",
            "properties": {
                "a": {"type": "string", "title": "Folder", "description": "Where it is kept", "minLength": 3},
                "b": {"type": "integer", "title": "Copies", "minimum": 1, "maximum": 9, "default": 2},
                "c": {"type": "boolean", "title": "Overwrite"},
                "d": {"type": "string", "title": "Kind", "enum": ["x", "y"], "enumNames": ["big", "small"]},
                "e": {"type": "number", "title": "Share"},
                "f": {"type": "string", "title": "Color", "oneOf": [{"const": "r", "title": "red"}, {"const": "g", "title": "green"}]},
            },
            "required": ["a", "b", "c"],
        }),
    ));
    bench.later(Duration::from_millis(500));
    let seen = bench.seen(80, 24);
    for part in [
        "The MCP server files asks: Where to?",
        "→ Folder:",
        "Where it is kept",
        "Copies: 2",
        "Overwrite: yes · no",
    ] {
        assert!(seen.contains(part), "{part}:\n{seen}");
    }
    assert!(seen.contains("Share (optional):") && seen.contains("Esc declines"), "{seen}");
    bench.key(KeyCode::Enter);
    assert!(bench.seen(80, 24).contains("Folder is needed."));
    bench.text("do");
    bench.key(KeyCode::Enter);
    assert!(bench.seen(80, 24).contains("→ Copies: 2"));
    bench.key(KeyCode::Backspace);
    bench.text("many");
    bench.key(KeyCode::Enter);
    assert!(bench.seen(80, 24).contains("Copies is no number."));
    (0..4).for_each(|_| bench.key(KeyCode::Backspace));
    bench.text("3");
    bench.key(KeyCode::Enter);
    bench.key(KeyCode::Left);
    assert!(bench.seen(80, 24).contains("yes · [no]"));
    bench.key(KeyCode::Enter);
    bench.key(KeyCode::Char('2'));
    assert!(bench.seen(80, 24).contains("big · [small]"));
    bench.key(KeyCode::Enter);
    bench.screen.handle_paste("0.5");
    bench.key(KeyCode::Enter);
    assert!(bench.seen(80, 24).contains("Enter sends"));
    bench.key(KeyCode::Enter);
    // Too short for the schema: back to the field, nothing sent.
    assert_eq!(bench.effects(), []);
    let seen = bench.seen(80, 24);
    assert!(seen.contains("→ Folder: do") && seen.contains("shorter"), "{seen}");
    bench.text("cs");
    bench.key(KeyCode::Up);
    bench.key(KeyCode::Enter);
    let data = json!({"a": "docs", "b": 3, "c": false, "d": "y", "e": 0.5});
    assert_eq!(bench.effects(), [Effect::Answer { ask: AskId(7), answer: Answer::Form { data } }]);
    assert!(!bench.seen(80, 24).contains("Folder"));
}

/// Esc declines and stops nothing; what was being typed is not taken for an answer; what cannot be shown is declined.
#[test]
fn a_form_can_be_declined() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let declined =
        |id| Effect::Answer { ask: AskId(id), answer: Answer::Deny { remember: false, reason: None } };
    let mut bench = Bench::new();
    bench.started();
    bench.fact(form(1, schema.clone()));
    bench.later(Duration::from_millis(500));
    bench.text("half");
    bench.key(KeyCode::Esc);
    assert_eq!(bench.effects(), [declined(1)]);
    bench.text("my line");
    bench.fact(form(2, schema.clone()));
    bench.later(Duration::from_millis(500));
    bench.text(" goes on");
    let seen = bench.seen(80, 24);
    assert!(seen.contains("> my line goes on") && seen.contains("Tab: answer"), "{seen}");
    bench.key(KeyCode::Tab);
    bench.text("docs");
    bench.key(KeyCode::Enter);
    let answer = Answer::Form { data: json!({"a": "docs"}) };
    assert_eq!(bench.effects(), [Effect::Answer { ask: AskId(2), answer }]);
    assert!(bench.seen(80, 24).contains("> my line goes on"));
    for (id, odd) in [
        (3, json!({"type": "object", "properties": {"a": {"type": "object", "properties": {}}}})),
        (4, json!({"type": "object", "properties": {}})),
        (5, json!({"type": "object", "properties": {"a": {"type": "string", "enum": []}}})),
        (6, json!(3)),
    ] {
        bench.fact(form(id, odd));
        assert_eq!(bench.effects(), [declined(id)]);
        let seen = bench.seen(80, 24);
        assert!(seen.contains("server files asks") && seen.contains("declined"), "{seen}");
    }
}

/// Esc and a paste that were on their way when a form appeared are not meant for it.
#[test]
fn a_form_takes_no_escape_and_no_paste_before_it_can_be_read() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let mut bench = Bench::new();
    bench.started();
    bench.fact(form(1, schema.clone()));
    bench.later(Duration::from_millis(50));
    bench.key(KeyCode::Esc);
    assert_eq!(bench.effects(), [Effect::Cancel], "the turn is stopped, the form is not declined");
    let mut bench = Bench::new();
    bench.started();
    bench.fact(form(1, schema.clone()));
    bench.later(Duration::from_millis(50));
    bench.screen.handle_paste("a line");
    assert_eq!(bench.screen.input.text(), "a line");
    let seen = bench.seen(80, 24);
    assert!(seen.contains("> a line") && seen.contains("Tab: answer"), "{seen}");
    let mut bench = Bench::new();
    bench.started();
    bench.fact(form(1, schema));
    bench.later(Duration::from_millis(400));
    bench.screen.handle_paste("docs");
    assert_eq!(bench.screen.input.text(), "", "later it is the form's");
    bench.key(KeyCode::Esc);
    let answer = Answer::Deny { remember: false, reason: None };
    assert_eq!(bench.effects(), [Effect::Answer { ask: AskId(1), answer }]);
}

/// Read from the journal: one that was answered long ago is passed over, one that is still open is declined at the end.
#[test]
fn an_odd_form_is_declined_only_while_it_is_open() {
    let odd = || json!({"type": "object", "properties": {}});
    let declined =
        |id| Effect::Answer { ask: AskId(id), answer: Answer::Deny { remember: false, reason: None } };
    let mut bench = Bench::new();
    bench.replayed(Fact::TurnStarted { turn: TurnId(1), model: "fake/m1".into() });
    bench.replayed(form(1, odd()));
    bench.replayed(Fact::AskSettled { id: AskId(1), answer: Answer::Form { data: json!({}) } });
    // Its process ended before it could be settled.
    bench.replayed(form(2, odd()));
    bench.replayed(Fact::TurnEnded { turn: TurnId(1), outcome: Outcome::Interrupted });
    bench.screen.finish_replay();
    assert_eq!(bench.effects(), []);
    let seen = bench.seen(80, 24);
    assert!(!seen.contains("declined"), "{seen}");
    bench.replayed(Fact::TurnStarted { turn: TurnId(2), model: "fake/m1".into() });
    bench.replayed(approval(3, 1));
    bench.replayed(form(4, odd()));
    bench.screen.finish_replay();
    assert_eq!(bench.effects(), [], "not its turn yet");
    bench.fact(Fact::AskSettled { id: AskId(3), answer: Answer::Cancelled });
    assert_eq!(bench.effects(), [declined(4)]);
    bench.screen.finish_replay();
    assert_eq!(bench.effects(), [], "once");
    let seen = bench.seen(80, 24);
    assert_eq!(seen.matches("so it was declined").count(), 1, "{seen}");
}

#[test]
fn an_odd_form_of_another_process_is_not_answered() {
    let odd = || json!({"type": "object", "properties": {}});
    let mut bench = Bench::new();
    bench.screen.held_by = Some("process 7".into());
    bench.started();
    bench.fact(form(1, odd()));
    bench.text("my line");
    bench.key(KeyCode::Enter);
    assert_eq!(bench.effects(), [Effect::Steer("my line".into())], "what is typed is no answer to it");
    let seen = bench.seen(80, 24);
    assert!(seen.contains("cannot be shown") && !seen.contains("declined"), "{seen}");
    bench.fact(Fact::AskSettled { id: AskId(1), answer: Answer::Cancelled });
    bench.fact(Fact::TurnEnded { turn: TurnId(1), outcome: Outcome::Done });
    bench.screen.take_effects();
    assert!(!bench.seen(80, 24).contains("cannot be shown"));
    // The other one has let go of the chat: the next turn is ours.
    bench.screen.apply_update(Update::Sent);
    bench.started();
    bench.fact(form(2, odd()));
    let answer = Answer::Deny { remember: false, reason: None };
    assert_eq!(bench.effects(), [Effect::Answer { ask: AskId(2), answer }]);
}

/// Everything that has a color, on a white background: nothing is drawn in what cannot be read there.
#[test]
fn the_light_palette_can_be_read_on_white() {
    let mut bench = Bench::with(Palette::Light);
    bench.started();
    bench.fact(Fact::ItemEnded { item: item(1, user("a question")) });
    let code = "# One\n\n**bold** `code` [link](https://e.org)\n\n> quote\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n\
        ```rust\n// comment\nfn main() { let x = \"text\"; let y = 42; call(x); }\n```\n\n```diff\n@@ -1 +1 @@\n-old\n+new\n```\n";
    bench.fact(Fact::ItemEnded { item: item(2, said(code)) });
    bench.fact(Fact::ItemEnded { item: item(3, call(ToolState::Done)) });
    bench.screen.handle_key(KeyEvent::new(KeyCode::Char('o'), KeyModifiers::CONTROL));
    for level in [Level::Info, Level::Warning, Level::Error] {
        bench.fact(Fact::Notice { notice: Notice { level, text: "Something to read.".into() } });
    }
    bench.fact(Fact::ItemStarted { item: item(4, call(ToolState::Waiting { ask: AskId(1) })) });
    bench.fact(approval(1, 4));
    bench.later(Duration::from_millis(500));
    let mut colors = foregrounds(&mut bench);
    bench.fact(Fact::AskSettled { id: AskId(1), answer: Answer::Cancelled });
    bench.fact(form(2, json!({"type": "object", "properties": {"a": {"type": "boolean"}}})));
    bench.later(Duration::from_millis(500));
    colors.extend(foregrounds(&mut bench));
    bench.key(KeyCode::F(1));
    colors.extend(foregrounds(&mut bench));
    bench.key(KeyCode::F(1));
    bench.screen.handle_key(KeyEvent::new(KeyCode::Char('t'), KeyModifiers::CONTROL));
    colors.extend(foregrounds(&mut bench));
    assert!(colors.len() >= 6, "the palette is seen at work: {colors:?}");
    for color in colors {
        assert!(contrast_on_white(color) >= 3.0, "{color:?} cannot be read on white");
    }
}

/// The colors of all text on a large screen.
fn foregrounds(bench: &mut Bench) -> HashSet<Color> {
    let mut buffer = Buffer::empty(Rect::new(0, 0, 100, 80));
    draw(&mut bench.screen, &mut buffer);
    let text = buffer.content().iter().filter(|cell| !cell.symbol().trim().is_empty());
    text.map(|cell| cell.fg).filter(|color| *color != Color::Reset).collect()
}

/// As WCAG counts it, with the colors that terminals have by these names (those of xterm).
fn contrast_on_white(color: Color) -> f64 {
    let (red, green, blue) = match color {
        Color::Black => (0, 0, 0),
        Color::Red => (205, 0, 0),
        Color::Green => (0, 205, 0),
        Color::Yellow => (205, 205, 0),
        Color::Blue => (0, 0, 238),
        Color::Magenta => (205, 0, 205),
        Color::Cyan => (0, 205, 205),
        Color::Gray => (229, 229, 229),
        Color::DarkGray => (127, 127, 127),
        Color::LightRed => (255, 0, 0),
        Color::LightGreen => (0, 255, 0),
        Color::LightYellow => (255, 255, 0),
        Color::LightBlue => (92, 92, 255),
        Color::LightMagenta => (255, 0, 255),
        Color::LightCyan => (0, 255, 255),
        Color::Rgb(red, green, blue) => (red, green, blue),
        Color::Indexed(at @ 16..=231) => {
            let level = |part: u8| [0, 95, 135, 175, 215, 255][usize::from(part % 6)];
            let at = at - 16;
            (level(at / 36), level(at / 6), level(at))
        }
        Color::Indexed(at @ 232..=255) => {
            let level = 8 + 10 * (at - 232);
            (level, level, level)
        }
        Color::Reset | Color::White | Color::Indexed(_) => (255, 255, 255),
    };
    let linear = |part: u8| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    };
    1.05 / (0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue) + 0.05)
}

#[test]
fn escape_stops_and_control_c_twice_leaves() {
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    let mut bench = Bench::new();
    bench.started();
    bench.key(KeyCode::Esc);
    assert_eq!(bench.effects(), [Effect::Cancel]);
    bench.screen.handle_key(control_c);
    assert_eq!(bench.effects(), [Effect::Cancel]);
    bench.screen.handle_key(control_c);
    assert_eq!(bench.effects(), [Effect::Leave]);
    let mut bench = Bench::new();
    bench.key(KeyCode::Esc);
    bench.key(KeyCode::Esc);
    assert_eq!(bench.effects(), [], "Esc never leaves");
    bench.screen.handle_key(control_c);
    bench.later(Duration::from_secs(10));
    bench.screen.handle_key(control_c);
    assert_eq!(bench.effects(), [], "two that are far apart are two first ones");
}

/// A finished call shows the beginning of its output; the rest is counted.
#[test]
fn the_first_lines_of_output_stay_visible() {
    let mut bench = Bench::new();
    bench.started();
    let mut kind = call(ToolState::Done);
    if let ItemKind::ToolCall(call) = &mut kind {
        call.name = "shell_command".into();
        call.details = None;
        call.error = false;
        call.result = vec![domain::Part::text("one\ntwo\nthree\nfour\nfive")];
    }
    bench.fact(Fact::ItemEnded { item: item(7, kind) });
    let seen = bench.seen(80, 24);
    assert!(seen.contains("│ three") && seen.contains("… 2 more") && !seen.contains("four"), "{seen}");
}

/// The picker without models says how to get one; a long list says how many entries follow.
#[test]
fn menus_say_what_is_missing_and_how_much_follows() {
    let mut bench = Bench::new();
    bench.screen.catalog.models.clear();
    bench.screen.handle_key(KeyEvent::new(KeyCode::Char('t'), KeyModifiers::CONTROL));
    assert!(bench.seen(100, 24).contains("Start Ollama or LM Studio"), "{}", bench.seen(100, 24));
    bench.key(KeyCode::Esc);
    let model = |number: usize| domain::model::ModelInfo { id: format!("p/m{number}"), ..Default::default() };
    bench.screen.catalog.models = (0..40).map(model).collect();
    bench.screen.handle_key(KeyEvent::new(KeyCode::Char('t'), KeyModifiers::CONTROL));
    assert!(bench.seen(80, 20).contains("more"), "{}", bench.seen(80, 20));
    bench.key(KeyCode::Esc);
    bench.key(KeyCode::F(1));
    let seen = bench.seen(80, 12);
    assert!(seen.contains("more rows below"), "{seen}");
    bench.key(KeyCode::End);
    let seen = bench.seen(80, 12);
    assert!(seen.contains("/quit") && !seen.contains("more rows below"), "{seen}");
}

#[test]
fn what_was_not_said_comes_back() {
    let mut bench = Bench::new();
    bench.started();
    bench.text("also this");
    bench.key(KeyCode::Enter);
    assert_eq!(bench.effects(), [Effect::Steer("also this".into())]);
    assert!(bench.seen(80, 24).contains("» also this"));
    bench.fact(Fact::TurnEnded { turn: TurnId(1), outcome: Outcome::Stopped });
    assert_eq!(bench.effects(), [Effect::WithdrawSteering]);
    assert_eq!(bench.screen.input.text(), "also this");
    // The engine says only now that the turn was over: the text is sent, and it is not typed any more.
    bench.screen.apply_update(Update::NotSteered("also this".into()));
    assert!(matches!(&bench.effects()[..], [Effect::Prompt(prompt)] if prompt.text == "also this"));
    assert!(bench.screen.input.is_empty());
}

/// The engine refuses text for a turn that reads nothing any more before the screen knows that it has ended: the text is
/// sent once, after the end.
#[test]
fn text_that_is_too_late_becomes_the_next_prompt() {
    let mut bench = Bench::new();
    bench.started();
    bench.text("also this");
    bench.key(KeyCode::Enter);
    assert_eq!(bench.effects(), [Effect::Steer("also this".into())]);
    bench.screen.apply_update(Update::NotSteered("also this".into()));
    assert_eq!(bench.effects(), [], "asking again would not end before the turn does");
    assert!(bench.seen(80, 24).contains("» also this (sent after this turn)"));
    bench.fact(Fact::TurnEnded { turn: TurnId(1), outcome: Outcome::Done });
    assert!(matches!(&bench.effects()[..], [Effect::Prompt(prompt)] if prompt.text == "also this"));
    assert!(bench.screen.input.is_empty() && bench.screen.steering.is_none());
}

/// Two texts in one turn: the first is read alone, the second stays on its way.
#[test]
fn text_that_was_read_is_not_shown_as_waiting() {
    let mut bench = Bench::new();
    bench.started();
    for text in ["one", "two"] {
        bench.text(text);
        bench.key(KeyCode::Enter);
    }
    let read = ItemKind::UserMessage { text: "one".into(), parts: vec![domain::Part::text("one")] };
    bench.fact(Fact::ItemEnded { item: item(9, read) });
    assert_eq!(bench.screen.steering.as_deref(), Some("two"));
}

#[test]
fn the_status_line_gives_way() {
    let mut bench = Bench::new();
    let usage = SessionUsage {
        last: Tokens { input: 40_000, output: 10_000, ..Tokens::default() },
        total: Tokens { input: 123_456, ..Tokens::default() },
        session_cost: Some(1.234),
        context_limit: Some(200_000),
        ..SessionUsage::default()
    };
    bench.fact(Fact::UsageChanged { usage });
    let last = |seen: String| seen.lines().last().unwrap_or_default().to_owned();
    assert_eq!(last(bench.seen(80, 10)), "fake/m1 · agent · 25 % of 200k · 123k tokens · $1.23");
    assert_eq!(last(bench.seen(30, 10)), "fake/m1 · 25 % of 200k · $1.23");
    assert_eq!(last(bench.seen(10, 10)), "$1.23");
}

#[test]
fn a_rollback_takes_what_came_after() {
    let mut bench = Bench::new();
    for id in 1..=4 {
        bench.fact(Fact::ItemEnded { item: item(id, said(&format!("message {id}"))) });
    }
    bench.fact(Fact::HistoryReplaced { keep: Some(ItemId(2)) });
    bench.fact(Fact::ItemEnded { item: item(5, said("message 5")) });
    let seen = bench.seen(40, 20);
    let shown: Vec<&str> = seen.lines().filter(|line| line.starts_with("message")).collect();
    assert_eq!(shown, ["message 1", "message 2", "message 5"]);
}

/// The place on the screen is kept while an answer grows below it; the end is followed again once it is reached.
#[test]
fn scrolling_stays_where_it_is() {
    let mut bench = Bench::new();
    for id in 1..=100 {
        bench.fact(Fact::ItemEnded { item: item(id, said(&format!("message {id}"))) });
    }
    assert!(bench.seen(40, 20).contains("message 100"));
    bench.key(KeyCode::PageUp);
    let before = bench.seen(40, 20);
    assert!(!before.contains("message 100"));
    bench.fact(Fact::ItemEnded { item: item(101, said("message 101")) });
    let first = |seen: &str| seen.lines().next().unwrap_or_default().to_owned();
    assert_eq!(first(&bench.seen(40, 20)), first(&before));
    for _ in 0..3 {
        bench.key(KeyCode::PageDown);
        bench.seen(40, 20);
    }
    bench.fact(Fact::ItemEnded { item: item(102, said("message 102")) });
    assert!(bench.seen(40, 20).contains("message 102"));
}

/// Any screen, any size, any key: nothing breaks and nothing is drawn outside.
#[test]
fn every_size_and_every_key_are_survived() {
    let mut bench = Bench::new();
    bench.fact(Fact::ItemEnded { item: item(1, user("日本語 🎉 question")) });
    bench.fact(Fact::ItemEnded {
        item: item(2, said("| a | b |\n|---|---|\n| 日本語 | x |\n\n- 🎉 item\n  - inner")),
    });
    bench.started();
    bench.fact(Fact::ItemStarted { item: item(3, call(ToolState::Waiting { ask: AskId(1) })) });
    bench.fact(approval(1, 3));
    let codes = [
        KeyCode::Tab,
        KeyCode::BackTab,
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Backspace,
        KeyCode::Delete,
        KeyCode::F(1),
        KeyCode::Char('r'),
        KeyCode::Char('/'),
        KeyCode::Char('é'),
        KeyCode::Char('\\'),
        KeyCode::Char('o'),
        KeyCode::Char('t'),
        KeyCode::Char('k'),
    ];
    let modifiers = [KeyModifiers::NONE, KeyModifiers::CONTROL, KeyModifiers::ALT, KeyModifiers::SHIFT];
    let mut state = 0x2545_F491_u32;
    for round in 0..4000_u32 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let pick = |count: usize, shift: u32| ((state >> shift) as usize) % count;
        bench.screen.handle_key(KeyEvent::new(codes[pick(codes.len(), 8)], modifiers[pick(4, 16)]));
        bench.later(Duration::from_millis(200));
        bench.screen.take_effects();
        if round.is_multiple_of(3) {
            bench.seen((state >> 4) as u16 % 90, (state >> 12) as u16 % 40);
        }
    }
}
