//! Themes from files: a built-in one with some styles of the user's.
//!
//! Invariant: what is not understood is reported, not guessed.

use ratatui::style::{Color, Modifier, Style};
use serde_json::{Map, Value};

use super::color::{ColorDepth, fit};
use super::theme::{Palette, Theme};

/// The built-in themes by name, beside `auto`.
pub const BUILT_IN: [(&str, Palette); 4] = [
    ("dark", Palette::Dark),
    ("light", Palette::Light),
    ("high-contrast", Palette::HighContrast),
    ("colorblind", Palette::ColorBlind),
];

/// Reads `{"base": "dark", "styles": {"user": {"fg": "#88c0d0", "bold": true}}}`.
pub fn read(value: &Value, depth: ColorDepth) -> Result<Theme, String> {
    let base = value.get("base").map_or(Some("dark"), Value::as_str).unwrap_or_default();
    let palette = BUILT_IN.iter().find(|(name, _)| *name == base).map(|(_, palette)| *palette);
    let palette =
        palette.ok_or_else(|| format!("base must be one of {}", BUILT_IN.map(|it| it.0).join(", ")))?;
    let mut theme = Theme::with_depth(palette, depth);
    let empty = Map::new();
    let styles =
        value.get("styles").map_or(Some(&empty), Value::as_object).ok_or("styles must be an object")?;
    for (name, wanted) in styles {
        let mut known = theme.styles_mut();
        let style = known.iter_mut().find(|(known, _)| known == name);
        let (_, style) = style.ok_or_else(|| format!("there is no style {name}"))?;
        **style = read_style(wanted, **style, depth).map_err(|problem| format!("{name}: {problem}"))?;
    }
    Ok(theme)
}

fn read_style(value: &Value, base: Style, depth: ColorDepth) -> Result<Style, String> {
    let members = value.as_object().ok_or("must be an object")?;
    let mut style = base;
    for (name, value) in members {
        let modifier = match name.as_str() {
            "fg" => {
                style.fg = Some(read_color(value, depth)?);
                continue;
            }
            "bg" => {
                style.bg = Some(read_color(value, depth)?);
                continue;
            }
            "bold" => Modifier::BOLD,
            "dim" => Modifier::DIM,
            "italic" => Modifier::ITALIC,
            "underline" => Modifier::UNDERLINED,
            "reverse" => Modifier::REVERSED,
            other => return Err(format!("{other} is unknown")),
        };
        let is_set = value.as_bool().ok_or_else(|| format!("{name} must be true or false"))?;
        style = if is_set { style.add_modifier(modifier) } else { style.remove_modifier(modifier) };
    }
    Ok(style)
}

/// `#rrggbb`, a number of the palette, or a name such as `lightblue`.
fn read_color(value: &Value, depth: ColorDepth) -> Result<Color, String> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.parse::<Color>().map(|color| fit(color, depth)).map_err(|_| format!("{text} is no color"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_changes_some_styles_of_a_theme() {
        let file = json!({"base": "light", "styles": {
            "user": {"fg": "#ff0000", "bold": false}, "promptBar": {"bg": 17}, "good": {"fg": "lightblue"},
        }});
        let theme = read(&file, ColorDepth::Indexed).expect("a theme");
        let light = Theme::with_depth(Palette::Light, ColorDepth::Indexed);
        assert_eq!(theme.user.fg, Some(Color::Indexed(196)));
        assert!(!theme.user.add_modifier.contains(Modifier::BOLD));
        assert_eq!((theme.prompt_bar.bg, theme.good.fg), (Some(Color::Indexed(17)), Some(Color::LightBlue)));
        assert_eq!(theme.accent, light.accent);
        for (wrong, problem) in [
            (json!({"base": "blue"}), "base must be"),
            (json!({"styles": {"users": {}}}), "no style users"),
            (json!({"styles": {"user": {"fg": "reddish"}}}), "reddish is no color"),
            (json!({"styles": {"user": {"blink": true}}}), "blink is unknown"),
            (json!({"styles": []}), "must be an object"),
        ] {
            let found = read(&wrong, ColorDepth::True).expect_err("wrong");
            assert!(found.contains(problem), "{found}");
        }
    }
}
