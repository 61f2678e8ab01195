//! What a frame costs on a slow line: only what changed is written.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;
use std::time::Duration;

use crossterm::event::KeyCode;
use domain::event::Fact;
use domain::{Item, ItemId, ItemKind, TurnId};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use terminal::chat::draw::draw;

use crate::screen::Bench;

/// The bytes that a terminal would get.
#[derive(Clone, Default)]
struct Line(Rc<RefCell<Vec<u8>>>);

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_frame_costs_few_bytes() {
    let line = Line::default();
    let options = TerminalOptions { viewport: Viewport::Fixed(Rect::new(0, 0, 120, 40)) };
    let mut terminal =
        Terminal::with_options(CrosstermBackend::new(line.clone()), options).expect("a terminal");
    let mut bench = Bench::new();
    let mut frame = |bench: &mut Bench| {
        line.0.borrow_mut().clear();
        let drawn = terminal.draw(|frame| {
            if let Some(cursor) = draw(&mut bench.screen, frame.buffer_mut()) {
                frame.set_cursor_position(cursor);
            }
        });
        drawn.expect("a frame");
        line.0.borrow().len()
    };
    let text: String =
        (0..60).map(|number| format!("A line of text with the number {number}.\n\n")).collect();
    let kind = ItemKind::AgentMessage { text, interrupted: false, provider: None };
    bench
        .fact(Fact::ItemEnded { item: Item { id: ItemId(1), turn: TurnId(1), step: 0, parent: None, kind } });
    let whole = frame(&mut bench);
    assert!(whole > 500, "the first frame has everything: {whole} bytes");
    bench.key(KeyCode::Char('x'));
    let typed = frame(&mut bench);
    assert!(typed < 150, "a letter that is typed: {typed} bytes");
    bench.started();
    frame(&mut bench);
    bench.later(Duration::from_millis(120));
    let spinner = frame(&mut bench);
    assert!(spinner < 150, "the sign of work turns: {spinner} bytes");
    assert!(frame(&mut bench) < 60, "a frame without a change");
}
