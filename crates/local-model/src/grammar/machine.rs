//! Owns the walk along a JSON text, byte by byte: which bytes may come next. Knows nodes; must not know tokens.
//! Invariants: a text that was accepted byte by byte can always be completed; each wait for the next sign allows a bounded
//! number of blanks.

use super::schema::{ANY, ANY_ARRAY, ANY_OBJECT, Members, Node, NodeId, Nodes};

/// Blanks in a row between two signs.
const MOST_BLANKS: u16 = 96;
/// Signs of one number; a whole number of so many digits fits 64 bits.
const MOST_DIGITS: u8 = 18;
/// Values within values.
const DEEPEST_VALUE: usize = 96;

/// One reading of the text so far: the values that are open, the innermost last.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Stack {
    frames: Vec<Frame>,
    blanks: u16,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Frame {
    /// A value begins here.
    Value(NodeId),
    /// The rest of a literal node.
    Literal {
        node: NodeId,
        at: usize,
    },
    String(Text),
    Number {
        state: Digits,
        is_integer: bool,
        count: u8,
    },
    Array {
        node: NodeId,
        count: usize,
        place: Place,
    },
    Object {
        node: NodeId,
        used: u128,
        place: Place,
    },
    Key(Key),
    /// A text that is not JSON, such as the end of a call; blanks may come before it.
    Mark {
        text: &'static str,
        at: usize,
    },
}

/// Where in an array or object the text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// After the bracket.
    Start,
    /// After a comma.
    Next,
    /// After a value.
    After,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Digits {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentFirst,
    /// Two digits: more would be beyond every number of a computer.
    ExponentSecond,
}

/// Where inside a string the text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Text {
    #[default]
    Plain,
    Escape,
    /// So many hexadecimal digits are missing.
    Unicode(u8),
    /// The second of them must keep out of the surrogates.
    NotSurrogate,
    /// So many bytes of a letter are missing; the next one lies between these.
    Letter(u8, u8, u8),
}

impl Stack {
    pub(super) fn new(frames: Vec<Frame>) -> Self {
        Self { frames, blanks: 0 }
    }

    /// The text is complete.
    pub(super) fn is_done(&self) -> bool {
        self.frames.is_empty()
    }

    /// The text may end here.
    pub(super) fn may_end(&self) -> bool {
        match &self.frames[..] {
            [] | [Frame::Mark { at: 0, .. }] => true,
            [Frame::Number { state, .. }] => state.is_whole(),
            _ => false,
        }
    }

    /// Whether a blank may come here. A number ends before it.
    fn takes_blank(&mut self) -> bool {
        match self.frames.last() {
            Some(
                Frame::Value(_) | Frame::Array { .. } | Frame::Object { .. } | Frame::Mark { at: 0, .. },
            ) => true,
            Some(Frame::Number { state, .. }) if state.is_whole() => {
                self.frames.pop();
                true
            }
            Some(
                Frame::Literal { .. }
                | Frame::String(_)
                | Frame::Number { .. }
                | Frame::Key(_)
                | Frame::Mark { .. },
            )
            | None => false,
        }
    }

    fn with(mut self, frame: Frame) -> Self {
        self.frames.push(frame);
        self
    }
}

impl Digits {
    fn is_whole(self) -> bool {
        match self {
            Self::Zero | Self::Whole | Self::Fraction | Self::ExponentFirst | Self::ExponentSecond => true,
            Self::Minus | Self::Point | Self::Exponent | Self::ExponentSign => false,
        }
    }

    fn next(self, byte: u8, is_integer: bool) -> Option<Self> {
        let digit = byte.is_ascii_digit();
        match self {
            Self::Minus if byte == b'0' => Some(Self::Zero),
            Self::Minus | Self::Whole if digit => Some(Self::Whole),
            Self::Zero | Self::Whole if byte == b'.' && !is_integer => Some(Self::Point),
            Self::Point | Self::Fraction if digit => Some(Self::Fraction),
            Self::Zero | Self::Whole | Self::Fraction if matches!(byte, b'e' | b'E') && !is_integer => {
                Some(Self::Exponent)
            }
            Self::Exponent if matches!(byte, b'+' | b'-') => Some(Self::ExponentSign),
            Self::Exponent | Self::ExponentSign if digit => Some(Self::ExponentFirst),
            Self::ExponentFirst if digit => Some(Self::ExponentSecond),
            Self::Minus
            | Self::Zero
            | Self::Whole
            | Self::Point
            | Self::Fraction
            | Self::Exponent
            | Self::ExponentSign
            | Self::ExponentFirst
            | Self::ExponentSecond => None,
        }
    }
}

impl Text {
    /// The state after a byte that does not end the string.
    fn next(self, byte: u8) -> Option<Self> {
        match self {
            Self::Plain => match byte {
                b'\\' => Some(Self::Escape),
                b'"' | 0..=0x1f => None,
                0x20..=0x7f => Some(Self::Plain),
                0xc2..=0xdf => Some(Self::Letter(1, 0x80, 0xbf)),
                0xe0 => Some(Self::Letter(2, 0xa0, 0xbf)),
                0xed => Some(Self::Letter(2, 0x80, 0x9f)),
                0xe1..=0xef => Some(Self::Letter(2, 0x80, 0xbf)),
                0xf0 => Some(Self::Letter(3, 0x90, 0xbf)),
                0xf1..=0xf3 => Some(Self::Letter(3, 0x80, 0xbf)),
                0xf4 => Some(Self::Letter(3, 0x80, 0x8f)),
                0x80..=0xc1 | 0xf5..=0xff => None,
            },
            Self::Escape => match byte {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(Self::Plain),
                b'u' => Some(Self::Unicode(4)),
                _ => None,
            },
            Self::Unicode(4) if matches!(byte, b'd' | b'D') => Some(Self::NotSurrogate),
            Self::NotSurrogate if matches!(byte, b'0'..=b'7') => Some(Self::Unicode(2)),
            Self::Unicode(left) if byte.is_ascii_hexdigit() => {
                Some(if left == 1 { Self::Plain } else { Self::Unicode(left - 1) })
            }
            Self::Letter(left, low, high) if (low..=high).contains(&byte) => {
                Some(if left == 1 { Self::Plain } else { Self::Letter(left - 1, 0x80, 0xbf) })
            }
            Self::Unicode(_) | Self::NotSurrogate | Self::Letter(..) => None,
        }
    }
}

impl Members {
    /// The members, as bits, that may come after those of `used`.
    fn next(&self, used: u128) -> u128 {
        let all = if self.list.len() >= 128 { u128::MAX } else { (1 << self.list.len()) - 1 };
        let left = all & !used;
        if !self.is_ordered {
            return left;
        }
        // None that stands before one that came, and none after one that must come first.
        let later = left & !((1u128 << (128 - used.leading_zeros()).min(127)) - 1);
        let required =
            self.list.iter().enumerate().filter(|(at, member)| member.is_required && later >> at & 1 == 1);
        match required.map(|(at, _)| at).next() {
            Some(at) => later & (((1u128 << at) - 1) | 1 << at),
            None => later,
        }
    }

    fn may_end(&self, used: u128) -> bool {
        self.list.iter().enumerate().all(|(at, member)| !member.is_required || used >> at & 1 == 1)
    }

    fn may_go_on(&self, used: u128) -> bool {
        self.others.is_some() || self.next(used) != 0
    }

    /// Those of `matching` whose name has `byte` at this place.
    fn matching(&self, matching: u128, at: usize, byte: u8) -> u128 {
        let named =
            |index: &usize| matching >> index & 1 == 1 && self.list[*index].name.get(at) == Some(&byte);
        (0..self.list.len()).filter(named).fold(0, |bits, index| bits | 1 << index)
    }
}

impl Nodes {
    /// Adds to `out` the readings of the text of `stack` with one byte more; none where the byte may not come.
    pub(super) fn step(&self, mut stack: Stack, byte: u8, out: &mut Vec<Stack>) {
        let is_blank = matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
        if is_blank && stack.takes_blank() {
            stack.blanks += 1;
            if stack.blanks <= MOST_BLANKS {
                out.push(stack);
            }
            return;
        }
        stack.blanks = 0;
        let Some(frame) = stack.frames.pop() else { return };
        match frame {
            Frame::Value(node) => self.begin(stack, node, byte, out),
            Frame::Literal { node, at } => out.extend(self.literal(stack, node, at, byte)),
            Frame::String(Text::Plain) if byte == b'"' => out.push(stack),
            Frame::String(text) => out.extend(text.next(byte).map(|text| stack.with(Frame::String(text)))),
            Frame::Number { state, is_integer, count } => match state.next(byte, is_integer) {
                // A number that is not whole must go on.
                Some(next) if count < MOST_DIGITS || !state.is_whole() => {
                    out.push(stack.with(Frame::Number { state: next, is_integer, count: count + 1 }));
                }
                // The number ended before this byte, which belongs to the value around it.
                _ if state.is_whole() => self.step(stack, byte, out),
                _ => {}
            },
            Frame::Array { node, count, place } => self.array(stack, (node, count, place), byte, out),
            Frame::Object { node, used, place } => out.extend(self.object(stack, node, used, place, byte)),
            Frame::Key(key) => out.extend(self.key(stack, key, byte)),
            Frame::Mark { text, at } => {
                if text.as_bytes().get(at) == Some(&byte) {
                    let is_whole = at + 1 == text.len();
                    out.push(if is_whole { stack } else { stack.with(Frame::Mark { text, at: at + 1 }) });
                }
            }
        }
    }

    /// The first byte of a value.
    fn begin(&self, stack: Stack, node: NodeId, byte: u8, out: &mut Vec<Stack>) {
        let number = |is_integer| {
            let state = match byte {
                b'-' => Digits::Minus,
                b'0' => Digits::Zero,
                b'1'..=b'9' => Digits::Whole,
                _ => return None,
            };
            Some(Frame::Number { state, is_integer, count: 1 })
        };
        let frame = match self.get(node) {
            // None of them is a union.
            Node::Union(nodes) => {
                return nodes.iter().for_each(|&node| self.begin(stack.clone(), node, byte, out));
            }
            Node::String => (byte == b'"').then_some(Frame::String(Text::Plain)),
            Node::Number { is_integer } => number(*is_integer),
            Node::Literal(_) => return out.extend(self.literal(stack, node, 0, byte)),
            Node::Array { .. } => {
                (byte == b'[').then_some(Frame::Array { node, count: 0, place: Place::Start })
            }
            Node::Object(_) => (byte == b'{').then_some(Frame::Object { node, used: 0, place: Place::Start }),
            Node::Any => match byte {
                b'"' => Some(Frame::String(Text::Plain)),
                // Beyond this depth a value of any kind is no list and no object any more.
                b'{' if stack.frames.len() < DEEPEST_VALUE => {
                    Some(Frame::Object { node: ANY_OBJECT, used: 0, place: Place::Start })
                }
                b'[' if stack.frames.len() < DEEPEST_VALUE => {
                    Some(Frame::Array { node: ANY_ARRAY, count: 0, place: Place::Start })
                }
                b't' => Some(Frame::Mark { text: "true", at: 1 }),
                b'f' => Some(Frame::Mark { text: "false", at: 1 }),
                b'n' => Some(Frame::Mark { text: "null", at: 1 }),
                _ => number(false),
            },
        };
        out.extend(frame.map(|frame| stack.with(frame)));
    }

    fn literal(&self, stack: Stack, node: NodeId, at: usize, byte: u8) -> Option<Stack> {
        let Node::Literal(text) = self.get(node) else { return None };
        let fits = text.get(at) == Some(&byte);
        let is_whole = at + 1 == text.len();
        fits.then(|| if is_whole { stack } else { stack.with(Frame::Literal { node, at: at + 1 }) })
    }

    fn array(&self, stack: Stack, array: (NodeId, usize, Place), byte: u8, out: &mut Vec<Stack>) {
        let (node, count, place) = array;
        let Node::Array { items, least, most } = *self.get(node) else { return };
        match (place, byte) {
            (Place::Start | Place::After, b']') if count >= least => out.push(stack),
            (Place::After, b',') if count < most => {
                out.push(stack.with(Frame::Array { node, count, place: Place::Next }));
            }
            (Place::Start | Place::Next, _) if count < most => {
                let inside = stack.with(Frame::Array { node, count: count + 1, place: Place::After });
                self.begin(inside, items, byte, out);
            }
            (Place::Start | Place::Next | Place::After, _) => {}
        }
    }

    fn object(&self, stack: Stack, node: NodeId, used: u128, place: Place, byte: u8) -> Option<Stack> {
        let Node::Object(members) = self.get(node) else { return None };
        match (place, byte) {
            (Place::Start | Place::After, b'}') if members.may_end(used) => Some(stack),
            (Place::Start | Place::Next, b'"') if members.may_go_on(used) => {
                let is_other = members.others.is_some();
                // Among other names the used ones must be known too: none may come twice.
                let matching = if is_other { u128::MAX } else { members.next(used) };
                let key = Key { node, used, matching, at: 0, is_other, text: Text::Plain };
                Some(stack.with(Frame::Key(key)))
            }
            (Place::After, b',') if members.may_go_on(used) => {
                Some(stack.with(Frame::Object { node, used, place: Place::Next }))
            }
            (Place::Start | Place::Next | Place::After, _) => None,
        }
    }

    fn key(&self, stack: Stack, key: Key, byte: u8) -> Option<Stack> {
        let Key { node, used, matching, at, is_other, text } = key;
        let Node::Object(members) = self.get(node) else { return None };
        if byte == b'"' && text == Text::Plain {
            let exact = |index: &usize| matching >> index & 1 == 1 && members.list[*index].name.len() == at;
            let (used, child) = match (0..members.list.len()).find(exact) {
                Some(index) if members.next(used) >> index & 1 == 1 => {
                    (used | 1 << index, members.list[index].node)
                }
                None if is_other && at > 0 => (used, members.others.unwrap_or(ANY)),
                Some(_) | None => return None,
            };
            let after = stack.with(Frame::Object { node, used, place: Place::After });
            return Some(after.with(Frame::Value(child)).with(Frame::Mark { text: ":", at: 0 }));
        }
        let text = text.next(byte)?;
        // An escape could spell a name that is known, so only names of the list have any.
        let is_other = is_other && byte != b'\\';
        let possible = if is_other { u128::MAX } else { members.next(used) };
        let matching = members.matching(matching & possible, at, byte);
        let key = Key { node, used, matching, at: at + 1, is_other, text };
        (matching != 0 || is_other).then(|| stack.with(Frame::Key(key)))
    }
}

/// The name of a member as far as it has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Key {
    node: NodeId,
    used: u128,
    matching: u128,
    at: usize,
    is_other: bool,
    text: Text,
}
