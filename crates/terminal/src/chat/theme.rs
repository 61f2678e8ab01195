//! Colors by meaning, from the terminal's own palette where it is readable, so that the user's color scheme applies.
//!
//! Invariants: with `Palette::Plain` no color is set, signs and attributes carry the meaning; a terminal never gets a color
//! that it cannot show.

use ratatui::style::{Color, Modifier, Style};

use super::color::ColorDepth;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Palette {
    Dark,
    Light,
    /// White, black and bright colors on a dark background.
    HighContrast,
    /// Blue and orange in place of green and red, for a dark background.
    ColorBlind,
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
const SKY: Color = Color::Indexed(39);
const ORANGE: Color = Color::Indexed(208);

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Theme {
    pub text: Style,
    pub dim: Style,
    pub user: Style,
    /// The bar behind a prompt.
    pub prompt_bar: Style,
    pub accent: Style,
    pub heading: Style,
    pub code: Style,
    pub link: Style,
    pub good: Style,
    pub bad: Style,
    pub warning: Style,
    pub added: Style,
    pub removed: Style,
    /// The backgrounds of added and removed lines of a diff, where the terminal has enough colors.
    pub added_line: Style,
    pub removed_line: Style,
    /// The changed words within a changed line.
    pub added_word: Style,
    pub removed_word: Style,
    pub hunk: Style,
    pub chosen: Style,
    pub keyword: Style,
    pub string: Style,
    pub number: Style,
    pub comment: Style,
    pub name: Style,
}

/// The backgrounds of a palette: prompt, added line, removed line, added word, removed word. Each as a color and as the index of
/// the fixed palette, where the nearest color of a dark one would often be a gray.
type Backgrounds = [(Color, u8); 5];

const ON_DARK: Backgrounds = [
    (Color::Rgb(42, 46, 56), 236),
    (Color::Rgb(20, 50, 33), 22),
    (Color::Rgb(66, 26, 30), 52),
    (Color::Rgb(32, 96, 58), 28),
    (Color::Rgb(128, 42, 48), 88),
];
const ON_LIGHT: Backgrounds = [
    (Color::Rgb(230, 233, 239), 254),
    (Color::Rgb(218, 245, 226), 194),
    (Color::Rgb(255, 228, 226), 224),
    (Color::Rgb(165, 228, 184), 157),
    (Color::Rgb(255, 190, 188), 217),
];
const HIGH_CONTRAST: Backgrounds = [
    (Color::Rgb(0, 0, 110), 18),
    (Color::Rgb(0, 60, 0), 22),
    (Color::Rgb(95, 0, 0), 52),
    (Color::Rgb(0, 120, 0), 28),
    (Color::Rgb(170, 0, 0), 124),
];
const COLOR_BLIND: Backgrounds = [
    (Color::Rgb(42, 46, 56), 236),
    (Color::Rgb(10, 42, 84), 17),
    (Color::Rgb(84, 48, 6), 58),
    (Color::Rgb(20, 84, 160), 25),
    (Color::Rgb(150, 84, 10), 94),
];

impl Theme {
    /// With the colors that every terminal has.
    pub fn new(palette: Palette) -> Self {
        let plain = palette == Palette::Plain;
        let color = |dark: Color, on_light: Color| match palette {
            Palette::Plain => Style::new(),
            Palette::Light => Style::new().fg(on_light),
            Palette::Dark | Palette::HighContrast | Palette::ColorBlind => Style::new().fg(dark),
        };
        let (green, red) = match palette {
            Palette::ColorBlind => (SKY, ORANGE),
            Palette::HighContrast => (Color::LightGreen, Color::LightRed),
            Palette::Dark | Palette::Light | Palette::Plain => (Color::Green, Color::Red),
        };
        let quiet = Style::new().add_modifier(Modifier::DIM);
        let dim = match palette {
            Palette::Plain => quiet,
            Palette::HighContrast => Style::new().fg(Color::White),
            Palette::Dark | Palette::Light | Palette::ColorBlind => color(GRAY_ON_DARK, GRAY_ON_LIGHT),
        };
        let marked = Style::new().add_modifier(Modifier::REVERSED);
        Self {
            text: Style::new(),
            dim,
            user: color(Color::Cyan, DARK_BLUE).add_modifier(Modifier::BOLD),
            prompt_bar: Style::new(),
            accent: color(Color::Cyan, DARK_BLUE),
            heading: color(Color::Magenta, Color::Magenta).add_modifier(Modifier::BOLD),
            code: if plain {
                Style::new().add_modifier(Modifier::ITALIC)
            } else {
                color(Color::Yellow, Color::Magenta)
            },
            link: color(LIGHT_BLUE, DARK_BLUE).add_modifier(Modifier::UNDERLINED),
            good: color(green, DARK_GREEN),
            bad: color(red, Color::Red).add_modifier(Modifier::BOLD),
            warning: color(Color::Yellow, Color::Magenta),
            added: color(green, DARK_GREEN),
            removed: color(red, Color::Red),
            added_line: Style::new(),
            removed_line: Style::new(),
            added_word: marked,
            removed_word: marked,
            hunk: color(Color::Cyan, TEAL),
            chosen: marked,
            keyword: color(Color::Magenta, Color::Magenta),
            string: color(green, DARK_GREEN),
            number: color(Color::Yellow, Color::Red),
            comment: dim.add_modifier(Modifier::ITALIC),
            name: color(LIGHT_BLUE, DARK_BLUE),
        }
    }

    /// The same with backgrounds, where the terminal has more than 16 colors.
    pub fn with_depth(palette: Palette, depth: ColorDepth) -> Self {
        let theme = Self::new(palette);
        let backgrounds = match palette {
            Palette::Plain => return theme,
            Palette::Dark => ON_DARK,
            Palette::Light => ON_LIGHT,
            Palette::HighContrast => HIGH_CONTRAST,
            Palette::ColorBlind => COLOR_BLIND,
        };
        if depth == ColorDepth::Sixteen {
            return theme;
        }
        let [prompt, added, removed, added_word, removed_word] =
            backgrounds.map(|(color, index)| match depth {
                ColorDepth::True => Style::new().bg(color),
                ColorDepth::Indexed | ColorDepth::Sixteen => Style::new().bg(Color::Indexed(index)),
            });
        Self {
            prompt_bar: prompt,
            added_line: added,
            removed_line: removed,
            added_word: added_word.add_modifier(Modifier::BOLD),
            removed_word: removed_word.add_modifier(Modifier::BOLD),
            ..theme
        }
    }

    /// Every style by its name in a theme file.
    pub(super) fn styles_mut(&mut self) -> [(&'static str, &mut Style); 24] {
        [
            ("text", &mut self.text),
            ("dim", &mut self.dim),
            ("user", &mut self.user),
            ("promptBar", &mut self.prompt_bar),
            ("accent", &mut self.accent),
            ("heading", &mut self.heading),
            ("code", &mut self.code),
            ("link", &mut self.link),
            ("good", &mut self.good),
            ("bad", &mut self.bad),
            ("warning", &mut self.warning),
            ("added", &mut self.added),
            ("removed", &mut self.removed),
            ("addedLine", &mut self.added_line),
            ("removedLine", &mut self.removed_line),
            ("addedWord", &mut self.added_word),
            ("removedWord", &mut self.removed_word),
            ("hunk", &mut self.hunk),
            ("chosen", &mut self.chosen),
            ("keyword", &mut self.keyword),
            ("string", &mut self.string),
            ("number", &mut self.number),
            ("comment", &mut self.comment),
            ("name", &mut self.name),
        ]
    }
}
