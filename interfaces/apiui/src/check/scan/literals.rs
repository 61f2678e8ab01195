//! Names, numbers, texts, templates, patterns and comments: where each of them ends.

use super::{Frame, Previous, Refused, Scan, is_line_end, is_name};

impl Scan<'_> {
    pub(super) fn take_name(&mut self) -> String {
        let start = self.at;
        while let Some(next) = self.rest().chars().next() {
            if next == '\\' {
                // An escape in a name: `\u0061` or `\u{61}`. No keyword is spelled so.
                self.at += 1;
                if self.rest().starts_with("u{") {
                    self.at += self.rest().find('}').map_or(self.rest().len(), |end| end + 1);
                }
            } else if is_name(next) || next.is_ascii_digit() {
                self.at += next.len_utf8();
            } else {
                break;
            }
        }
        self.code[start..self.at].to_owned()
    }

    pub(super) fn number(&mut self) {
        let length =
            self.rest().find(|next: char| !(next.is_ascii_alphanumeric() || next == '_' || next == '.'));
        self.at += length.unwrap_or(self.rest().len());
    }

    pub(super) fn string(&mut self, quote: char) -> Result<(), Refused> {
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => {
                    // A backslash before a line break of two characters continues past both.
                    if let Some((at, '\r')) = characters.next()
                        && self.rest()[at + 1..].starts_with('\n')
                    {
                        characters.next();
                    }
                }
                '\n' | '\r' => break,
                _ if character == quote => {
                    self.at += at + 1;
                    return Ok(());
                }
                _ => {}
            }
        }
        Err(self
            .refused("A quoted text does not end", "Close the quote on the same line, or use a template."))
    }

    /// The text of a template up to its end or its next substitution.
    pub(super) fn template(&mut self) -> Result<(), Refused> {
        let mut characters = self.rest().char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => {
                    characters.next();
                }
                '`' => {
                    self.at += at + 1;
                    self.previous = Previous::Operand;
                    return Ok(());
                }
                '$' if self.rest()[at + 1..].starts_with('{') => {
                    self.at += at + 2;
                    self.previous = Previous::Operator;
                    return self.push(Frame::Substitution);
                }
                _ => {}
            }
        }
        Err(self.refused("A template does not end", "Close it with a backtick."))
    }

    pub(super) fn pattern(&mut self) -> Result<(), Refused> {
        let mut class = false;
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => {
                    let escaped = characters.next();
                    if escaped.is_some_and(|(_, next)| is_line_end(next)) {
                        break;
                    }
                }
                '[' => class = true,
                ']' => class = false,
                '/' if !class => {
                    self.at += at + 1;
                    self.take_name();
                    return Ok(());
                }
                _ if is_line_end(character) => break,
                _ => {}
            }
        }
        Err(self.refused("A pattern does not end", "Close it with `/` on the same line."))
    }

    pub(super) fn comment(&mut self) -> Result<bool, Refused> {
        if self.rest().starts_with("//") {
            self.skip_line();
            return Ok(true);
        }
        if self.rest().starts_with("/*") {
            let Some(end) = self.rest()[2..].find("*/") else {
                return Err(self.refused("A comment does not end", "Close it with `*/`."));
            };
            self.at += 2 + end + 2;
            return Ok(true);
        }
        Ok(false)
    }

    pub(super) fn skip_line(&mut self) {
        self.at += self.rest().find(is_line_end).unwrap_or(self.rest().len());
    }
}
