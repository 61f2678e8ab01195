//! How many colors a terminal has, and the nearest color that it can show.

use ratatui::style::Color;

/// How many colors a terminal shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ColorDepth {
    Sixteen,
    /// The fixed palette of 256.
    Indexed,
    True,
}

impl ColorDepth {
    /// By `COLORTERM` and `TERM`.
    pub fn of(color_term: Option<&str>, term: Option<&str>) -> Self {
        let term = term.unwrap_or_default();
        if color_term.is_some_and(|name| ["truecolor", "24bit"].contains(&name)) || term.ends_with("-direct")
        {
            return Self::True;
        }
        let is_rich = ["256color", "kitty", "ghostty", "alacritty", "foot", "wezterm"];
        if is_rich.iter().any(|name| term.contains(name)) { Self::Indexed } else { Self::Sixteen }
    }
}

/// The nearest color of a terminal with so many colors.
pub(super) fn fit(color: Color, depth: ColorDepth) -> Color {
    match (color, depth) {
        (Color::Rgb(red, green, blue), ColorDepth::Indexed) => nearest_index([red, green, blue]),
        (Color::Rgb(red, green, blue), ColorDepth::Sixteen) => nearest_name([red, green, blue]),
        (color, _) => color,
    }
}

/// The levels of the 6×6×6 cube.
const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];

fn nearest_index(wanted: [u8; 3]) -> Color {
    let level = |value: u8| {
        let index = (0..LEVELS.len()).min_by_key(|at| LEVELS[*at].abs_diff(value)).unwrap_or(0);
        u8::try_from(index).unwrap_or(0)
    };
    let cube = wanted.map(level);
    let of_cube = cube.map(|at| LEVELS[usize::from(at)]);
    let mean = wanted.iter().map(|value| u16::from(*value)).sum::<u16>() / 3;
    let step = u8::try_from(mean.saturating_sub(3) / 10).unwrap_or(23).min(23);
    let gray = 8 + 10 * step;
    if distance(wanted, [gray; 3]) < distance(wanted, of_cube) {
        return Color::Indexed(232 + step);
    }
    Color::Indexed(16 + 36 * cube[0] + 6 * cube[1] + cube[2])
}

fn nearest_name(wanted: [u8; 3]) -> Color {
    let named = [
        (Color::Black, [0, 0, 0]),
        (Color::Red, [205, 0, 0]),
        (Color::Green, [0, 205, 0]),
        (Color::Yellow, [205, 205, 0]),
        (Color::Blue, [0, 0, 238]),
        (Color::Magenta, [205, 0, 205]),
        (Color::Cyan, [0, 205, 205]),
        (Color::Gray, [229, 229, 229]),
        (Color::DarkGray, [127, 127, 127]),
        (Color::White, [255, 255, 255]),
    ];
    named.iter().min_by_key(|(_, known)| distance(wanted, *known)).map_or(Color::Reset, |(color, _)| *color)
}

fn distance(one: [u8; 3], other: [u8; 3]) -> u32 {
    one.iter().zip(other).map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_fit_the_terminal() {
        for (color_term, term, expected) in [
            (Some("truecolor"), Some("xterm"), ColorDepth::True),
            (None, Some("xterm-256color"), ColorDepth::Indexed),
            (Some("yes"), Some("xterm-kitty"), ColorDepth::Indexed),
            (None, Some("screen"), ColorDepth::Sixteen),
            (None, None, ColorDepth::Sixteen),
        ] {
            assert_eq!(ColorDepth::of(color_term, term), expected, "{color_term:?} {term:?}");
        }
        let gray = Color::Rgb(48, 48, 48);
        assert_eq!(fit(gray, ColorDepth::True), gray);
        assert_eq!(fit(gray, ColorDepth::Indexed), Color::Indexed(236));
        assert_eq!(fit(Color::Rgb(255, 0, 0), ColorDepth::Indexed), Color::Indexed(196));
        assert_eq!(fit(Color::Rgb(250, 10, 10), ColorDepth::Sixteen), Color::Red);
        assert_eq!(fit(Color::Indexed(3), ColorDepth::Sixteen), Color::Indexed(3));
    }
}
