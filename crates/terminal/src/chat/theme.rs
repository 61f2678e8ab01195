//! Colors by meaning, from the terminal's own palette where it is readable, so that the user's color scheme applies.
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

// Some colors of the terminal's own palette are not readable: green and cyan on white, blue and the dark gray of many
// schemes on black. These come from the fixed part of the palette, which schemes do not change.
const DARK_GREEN: Color = Color::Indexed(28);
const TEAL: Color = Color::Indexed(30);
const LIGHT_BLUE: Color = Color::Indexed(75);
const DARK_BLUE: Color = Color::Indexed(26);
const GRAY_ON_DARK: Color = Color::Indexed(245);
const GRAY_ON_LIGHT: Color = Color::Indexed(240);

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
    /// The changed words within a changed line.
    pub changed_word: Modifier,
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
        let dim = if plain { quiet } else { color(GRAY_ON_DARK, GRAY_ON_LIGHT) };
        Self {
            text: Style::new(),
            dim,
            user: color(Color::Cyan, DARK_BLUE).add_modifier(Modifier::BOLD),
            accent: color(Color::Cyan, DARK_BLUE),
            heading: color(Color::Magenta, Color::Magenta).add_modifier(Modifier::BOLD),
            code: if plain {
                Style::new().add_modifier(Modifier::ITALIC)
            } else {
                color(Color::Yellow, Color::Magenta)
            },
            link: color(LIGHT_BLUE, DARK_BLUE).add_modifier(Modifier::UNDERLINED),
            good: color(Color::Green, DARK_GREEN),
            bad: color(Color::Red, Color::Red).add_modifier(Modifier::BOLD),
            warning: color(Color::Yellow, Color::Magenta),
            added: color(Color::Green, DARK_GREEN),
            removed: color(Color::Red, Color::Red),
            changed_word: Modifier::REVERSED,
            hunk: color(Color::Cyan, TEAL),
            chosen: Style::new().add_modifier(Modifier::REVERSED),
            keyword: color(Color::Magenta, Color::Magenta),
            string: color(Color::Green, DARK_GREEN),
            number: color(Color::Yellow, Color::Red),
            comment: dim.add_modifier(Modifier::ITALIC),
            name: color(LIGHT_BLUE, DARK_BLUE),
        }
    }
}
