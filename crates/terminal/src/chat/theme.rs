//! Colors by meaning. Uses only the terminal's own palette, so that the user's color scheme applies.
//!
//! Invariant: with `Palette::Plain` no color is set; signs and attributes carry the meaning.

use ratatui::style::{Color, Modifier, Style};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Palette {
    Dark,
    Light,
    /// For `NO_COLOR` and terminals without colors.
    Plain,
}

/// The terminal's own green and cyan are not readable on white.
const DARK_GREEN: Color = Color::Indexed(28);
const TEAL: Color = Color::Indexed(30);

#[derive(Clone, Copy, Debug)]
pub struct Theme {
    pub text: Style,
    pub dim: Style,
    pub user: Style,
    pub accent: Style,
    pub heading: Style,
    pub code: Style,
    pub link: Style,
    pub good: Style,
    pub bad: Style,
    pub warning: Style,
    pub added: Style,
    pub removed: Style,
    pub hunk: Style,
    pub chosen: Style,
    pub keyword: Style,
    pub string: Style,
    pub number: Style,
    pub comment: Style,
    pub name: Style,
}

impl Theme {
    pub fn new(palette: Palette) -> Self {
        let plain = palette == Palette::Plain;
        let light = palette == Palette::Light;
        let color = |dark: Color, on_light: Color| match (plain, light) {
            (true, _) => Style::new(),
            (false, true) => Style::new().fg(on_light),
            (false, false) => Style::new().fg(dark),
        };
        let quiet = Style::new().add_modifier(Modifier::DIM);
        let dim = if plain { quiet } else { color(Color::DarkGray, Color::DarkGray) };
        Self {
            text: Style::new(),
            dim,
            user: color(Color::Cyan, Color::Blue).add_modifier(Modifier::BOLD),
            accent: color(Color::Cyan, Color::Blue),
            heading: color(Color::Magenta, Color::Magenta).add_modifier(Modifier::BOLD),
            code: if plain {
                Style::new().add_modifier(Modifier::ITALIC)
            } else {
                color(Color::Yellow, Color::Magenta)
            },
            link: color(Color::Blue, Color::Blue).add_modifier(Modifier::UNDERLINED),
            good: color(Color::Green, DARK_GREEN),
            bad: color(Color::Red, Color::Red).add_modifier(Modifier::BOLD),
            warning: color(Color::Yellow, Color::Magenta),
            added: color(Color::Green, DARK_GREEN),
            removed: color(Color::Red, Color::Red),
            hunk: color(Color::Cyan, TEAL),
            chosen: Style::new().add_modifier(Modifier::REVERSED),
            keyword: color(Color::Magenta, Color::Magenta),
            string: color(Color::Green, DARK_GREEN),
            number: color(Color::Yellow, Color::Red),
            comment: dim.add_modifier(Modifier::ITALIC),
            name: color(Color::Blue, Color::Blue),
        }
    }
}
