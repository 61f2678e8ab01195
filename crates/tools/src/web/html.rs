//! The tags and the text of a page, in order, from the tokenizer of `html5gum`. Knows nothing of how a page is shown.
//!
//! Invariant: time is linear in the length; scripts, styles and comments are not text.

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token {
    /// With character references resolved.
    Text(String),
    /// In lower case, with the attributes of `READ_ATTRIBUTES`.
    Open {
        name: String,
        attributes: Vec<(String, String)>,
    },
    Close {
        name: String,
    },
}

/// Elements whose content is not shown.
const HIDDEN_ELEMENTS: &[&str] =
    &["script", "style", "iframe", "noembed", "noframes", "template", "svg", "object", "canvas"];
/// A tag may have any number of other attributes.
const READ_ATTRIBUTES: &[&str] = &["href", "src", "alt", "start"];

pub(super) fn tokens(page: &str) -> impl Iterator<Item = Token> + '_ {
    let mut builder = Builder::default();
    let mut emitter = CallbackEmitter::new(move |event: CallbackEvent<'_>, _: Span<()>| builder.push(event));
    // Script and style end at their own end tag only.
    emitter.naively_switch_states(true);
    Tokenizer::new_with_emitter(page, emitter).map_while(Result::ok)
}

#[derive(Default)]
struct Builder {
    tag: Option<(String, Vec<(String, String)>)>,
    /// The attribute whose value comes next, if it is read.
    attribute: Option<&'static str>,
    /// The hidden element that is open.
    hidden: Option<String>,
}

impl Builder {
    fn push(&mut self, event: CallbackEvent<'_>) -> Option<Token> {
        if let Some(hidden) = &self.hidden {
            if matches!(event, CallbackEvent::EndTag { name } if name == hidden.as_bytes()) {
                return Some(Token::Close { name: self.hidden.take()? });
            }
            return None;
        }
        match event {
            CallbackEvent::OpenStartTag { name } => self.tag = Some((to_text(name), Vec::new())),
            CallbackEvent::AttributeName { name } => {
                self.attribute = READ_ATTRIBUTES.iter().copied().find(|wanted| wanted.as_bytes() == name);
            }
            CallbackEvent::AttributeValue { value } => {
                if let (Some(name), Some((_, attributes))) = (self.attribute.take(), &mut self.tag) {
                    attributes.push((name.to_owned(), to_text(value)));
                }
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                let (name, attributes) = self.tag.take()?;
                if HIDDEN_ELEMENTS.contains(&name.as_str()) {
                    // `<svg/>` is whole; `<script/>` is not.
                    let is_whole = self_closing && name == "svg";
                    self.hidden = (!is_whole).then_some(name);
                    return None;
                }
                return Some(Token::Open { name, attributes });
            }
            CallbackEvent::EndTag { name } => return Some(Token::Close { name: to_text(name) }),
            CallbackEvent::String { value } => return Some(Token::Text(to_text(value))),
            CallbackEvent::Comment { .. } | CallbackEvent::Doctype { .. } | CallbackEvent::Error(_) => {}
        }
        None
    }
}

/// Without characters that a page uses to hide text from a reader.
fn to_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace(|char: char| char.is_control() && !"\n\t".contains(char), "")
}
