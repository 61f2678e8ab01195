//! Measures a frame in a chat of 10,000 messages, without a terminal. `cargo bench -p dragoman-terminal`.

#![allow(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use domain::command::SessionSettings;
use domain::event::{Channel, EventBody, Fact, ItemDelta, Recorded};
use domain::{Event, Item, ItemId, ItemKind, Part, SessionId, TurnId};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use terminal::Palette;
use terminal::chat::draw::draw;
use terminal::chat::screen::Screen;
use terminal::chat::theme::Theme;

const MESSAGES: u64 = 10_000;
const FRAMES: usize = 500;
/// The limit for the median; the last percentile depends on the load of the machine.
const TARGET: f64 = 4.0;

fn main() {
    let theme = Theme::new(Palette::Dark);
    let mut screen = Screen::new(theme, Vec::new(), SessionSettings::default(), Instant::now(), 0);
    let since = Instant::now();
    for number in 1..=MESSAGES {
        screen.handle_event(&fact(
            number,
            Fact::ItemEnded { item: message(number, !number.is_multiple_of(2)) },
        ));
    }
    println!("{:<52} {:>10.3} ms", format!("take in {MESSAGES} messages"), millis(since.elapsed()));
    println!("{:<52} {:>10} {:>10}", "a frame of 200 × 60, milliseconds", "p50", "p99");
    let mut wide = Buffer::empty(Rect::new(0, 0, 200, 60));
    row("the first frame", frames(1, &mut screen, &mut wide, |_, _| {}));
    row("a key typed", frames(FRAMES, &mut screen, &mut wide, |screen, _| press(screen, KeyCode::Char('x'))));
    row("a page up", frames(FRAMES, &mut screen, &mut wide, |screen, _| press(screen, KeyCode::PageUp)));
    row("a page down", frames(FRAMES, &mut screen, &mut wide, |screen, _| press(screen, KeyCode::PageDown)));
    let mut sizes = Vec::new();
    for columns in (60..160).cycle().take(FRAMES) {
        let mut buffer = Buffer::empty(Rect::new(0, 0, columns, 60));
        sizes.extend(frames(1, &mut screen, &mut buffer, |_, _| {}));
    }
    row("another width each time", sizes);
    press(&mut screen, KeyCode::Enter);
    screen.take_effects();
    grow(&mut screen, &mut wide);
}

/// An answer of 200 KB that grows by a chunk a frame.
fn grow(screen: &mut Screen, buffer: &mut Buffer) {
    let id = ItemId(MESSAGES + 1);
    let kind = ItemKind::AgentMessage { text: String::new(), interrupted: false, provider: None };
    let item = Item { id, turn: TurnId(MESSAGES), step: 0, parent: None, kind };
    screen.handle_event(&fact(MESSAGES + 1, Fact::ItemStarted { item }));
    let chunk = answer_text(7).repeat(2);
    let mut offset = 0;
    let times = frames(FRAMES, screen, buffer, |screen, _| {
        let delta = ItemDelta { item: id, channel: Channel::Text, offset, text: chunk.clone() };
        offset += chunk.len() as u64;
        screen.handle_event(&Event { session: Some(SessionId::new("s")), body: EventBody::Delta(delta) });
    });
    row(&format!("a chunk of an answer of {} KB", offset / 1000), times);
}

fn press(screen: &mut Screen, key: KeyCode) {
    screen.handle_key(KeyEvent::new(key, KeyModifiers::NONE));
}

fn frames(
    count: usize,
    screen: &mut Screen,
    buffer: &mut Buffer,
    mut change: impl FnMut(&mut Screen, usize),
) -> Vec<Duration> {
    let mut times = Vec::new();
    for at in 0..count {
        let since = Instant::now();
        change(screen, at);
        buffer.reset();
        draw(screen, buffer);
        times.push(since.elapsed());
    }
    times
}

fn row(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| millis(times[(times.len() - 1) * share / 100]);
    let verdict = if at(50) <= TARGET { "met" } else { "MISSED" };
    println!("{name:<52} {:>10.3} {:>10.3}  target ≤ {TARGET} {verdict}", at(50), at(99));
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn fact(number: u64, fact: Fact) -> Event {
    Event::fact(SessionId::new("s"), Arc::new(Recorded { number, at: 0, fact }))
}

fn message(number: u64, user: bool) -> Item {
    let kind = if user {
        let text = format!("Question {number}: what does this do?");
        ItemKind::UserMessage { parts: vec![Part::text(text.clone())], text }
    } else {
        ItemKind::AgentMessage { text: answer_text(number), interrupted: false, provider: None }
    };
    Item { id: ItemId(number), turn: TurnId(number), step: 0, parent: None, kind }
}

fn answer_text(number: u64) -> String {
    format!(
        "Answer **{number}** with `code` and a list:\n\n- first point of some length\n- second\n\n```rust\nfn main() {{\n    \
         println!(\"{number}\"); // done\n}}\n```\n\nThat is all.\n\n"
    )
}
