//! The user's own keys: each stands for another key, or for a command.
//!
//! Invariant: a name that is not understood is reported and changes nothing.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key of the user's does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Binding {
    Key(KeyEvent),
    /// Without its slash.
    Command(String),
}

#[derive(Clone, Debug, Default)]
pub struct Bindings(Vec<(KeyEvent, Binding)>);

impl Bindings {
    /// Reads pairs such as `ctrl-p` and `up`, or `f5` and `/review`. The second list names those that are wrong.
    pub fn read(pairs: &[(String, String)]) -> (Self, Vec<String>) {
        let (mut bindings, mut wrong) = (Vec::new(), Vec::new());
        for (name, meaning) in pairs {
            let binding = match meaning.strip_prefix('/') {
                Some(command) if !command.trim().is_empty() => {
                    Some(Binding::Command(command.trim().to_owned()))
                }
                Some(_) => None,
                None => read_key(meaning).map(Binding::Key),
            };
            match read_key(name).zip(binding) {
                Some(pair) => bindings.push(pair),
                None => wrong.push(format!("chat.keys: {name}: {meaning}")),
            }
        }
        (Self(bindings), wrong)
    }

    pub(super) fn find(&self, key: KeyEvent) -> Option<&Binding> {
        let is_same = |known: &KeyEvent| known.code == key.code && known.modifiers == key.modifiers;
        self.0.iter().find(|(known, _)| is_same(known)).map(|(_, binding)| binding)
    }
}

/// `ctrl-alt-shift-x`, `f5`, `pageup`, …
fn read_key(name: &str) -> Option<KeyEvent> {
    let name = name.trim().to_lowercase();
    let mut modifiers = KeyModifiers::NONE;
    let mut rest = name.as_str();
    loop {
        let known =
            [("ctrl-", KeyModifiers::CONTROL), ("alt-", KeyModifiers::ALT), ("shift-", KeyModifiers::SHIFT)];
        let Some((prefix, modifier)) = known.iter().find(|(prefix, _)| rest.starts_with(prefix)) else {
            break;
        };
        modifiers |= *modifier;
        rest = &rest[prefix.len()..];
    }
    let code = match rest {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" if modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
        "tab" => KeyCode::Tab,
        "space" => KeyCode::Char(' '),
        "backspace" => KeyCode::Backspace,
        "delete" => KeyCode::Delete,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pageup" => KeyCode::PageUp,
        "pagedown" => KeyCode::PageDown,
        _ => {
            let mut characters = rest.chars();
            match (characters.next()?, characters.as_str()) {
                ('f', number) if !number.is_empty() => {
                    KeyCode::F(number.parse().ok().filter(|n| (1..=12).contains(n))?)
                }
                // A letter alone is text, not a key to bind.
                (character, "") if !modifiers.difference(KeyModifiers::SHIFT).is_empty() => {
                    KeyCode::Char(character)
                }
                _ => return None,
            }
        }
    };
    Some(KeyEvent::new(code, modifiers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_keys_are_read() {
        let pairs = [
            ("ctrl-p", "up"),
            ("F5", "/review main"),
            ("alt-shift-k", "ctrl-k"),
            ("x", "up"),
            ("f5", "nowhere"),
            ("ctrl-q", "/"),
        ];
        let pairs: Vec<(String, String)> =
            pairs.map(|(key, meaning)| (key.to_owned(), meaning.to_owned())).into();
        let (bindings, wrong) = Bindings::read(&pairs);
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        let up = KeyEvent::new(KeyCode::Up, KeyModifiers::NONE);
        let control = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        assert_eq!(bindings.find(control('p')), Some(&Binding::Key(up)));
        let five = KeyEvent::new(KeyCode::F(5), KeyModifiers::NONE);
        assert_eq!(bindings.find(five), Some(&Binding::Command("review main".to_owned())));
        assert_eq!(bindings.find(control('x')), None);
    }
}
