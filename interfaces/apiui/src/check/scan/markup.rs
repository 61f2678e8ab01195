//! Elements: tags, and the text between them.

use super::{Frame, Previous, Refused, Scan, is_space};

impl Scan<'_> {
    /// Between `<` and `>`.
    pub(super) fn tag(&mut self) -> Result<(), Refused> {
        let Some(first) = self.rest().chars().next() else { return Ok(()) };
        if self.comment()? {
            return Ok(());
        }
        match first {
            '"' | '\'' => {
                let Some(end) = self.rest()[1..].find(first) else {
                    return Err(self.refused("The text of an attribute does not end", "Close the quote."));
                };
                self.at += 1 + end + 1;
            }
            '{' => {
                self.at += 1;
                self.previous = Previous::Operator;
                self.push(Frame::Container)?;
            }
            '<' => {
                self.at += 1;
                self.push(Frame::Tag { closing: false })?;
            }
            '/' => {
                self.at += 1;
                // Comments and white space may stand between `/` and `>`.
                while self.rest().starts_with(is_space) || self.comment()? {
                    self.at +=
                        self.rest().chars().next().filter(|next| is_space(*next)).map_or(0, char::len_utf8);
                }
                if self.rest().starts_with('>') {
                    self.at += 1;
                    self.pop();
                    self.previous = Previous::Operand;
                }
            }
            '>' => {
                self.at += 1;
                let closing = self.top() == Frame::Tag { closing: true };
                self.pop();
                if closing {
                    self.pop();
                    self.previous = Previous::Operand;
                } else {
                    self.push(Frame::Children)?;
                }
            }
            _ => self.at += first.len_utf8(),
        }
        Ok(())
    }

    /// Between an opening and a closing element.
    pub(super) fn children(&mut self) -> Result<(), Refused> {
        let Some(at) = self.rest().find(['<', '{']) else {
            return Err(self.refused("An element is not closed", "Close it with `</name>`."));
        };
        let container = self.rest()[at..].starts_with('{');
        self.at += at + 1;
        if container {
            self.previous = Previous::Operator;
            return self.push(Frame::Container);
        }
        while self.rest().starts_with(is_space) || self.comment()? {
            self.at += self.rest().chars().next().filter(|next| is_space(*next)).map_or(0, char::len_utf8);
        }
        let closing = self.rest().starts_with('/');
        self.at += usize::from(closing);
        self.push(Frame::Tag { closing })
    }
}
