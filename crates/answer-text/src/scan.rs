//! Watches text as it streams for thinking tags at its start and for what may be the beginning of a call.
//!
//! Invariant: text leaves in order and unchanged; once a call's opening is certain, the rest is held until the end.

/// A piece of the answer that may be shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Segment {
    Text(String),
    Reasoning(String),
}

/// Openings of calls, each at the start of a line.
const OPENINGS: [&str; 22] = [
    "<tool_call>",
    "<tool_calls>",
    "<tool_call ",
    "<toolcall>",
    "<function_call>",
    "<function_calls>",
    "<functioncall>",
    "<functions>",
    "<function=",
    "<function name=",
    "<invoke ",
    "<minimax:tool_call>",
    "<tools>",
    "<|tool_call|>",
    "<|tool_call_start|>",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "<|python_tag|>",
    "<｜tool▁calls▁begin｜>",
    "[TOOL_CALLS]",
    "[TOOL_CALL]",
    "[TOOL_REQUEST]",
];

const THINK: [(&str, &str); 4] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
];

/// Held text that is longer is no call and is shown, so that an endless answer fills no memory.
const MAX_HELD_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Scanner {
    mode: Mode,
    /// Text that was not let through yet.
    pending: String,
    calls: bool,
    /// Nothing but white space was said so far.
    blank: bool,
    /// Only white space precedes it on this line.
    line_start: bool,
    /// Inside a code block of the answer.
    fenced: bool,
    /// White space after a thinking tag belongs to the tag.
    trim: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Before anything was said: thinking may open.
    Start,
    Thinking(&'static str),
    Text,
    /// A call has opened.
    Held,
}

/// Whether a text begins like a call.
enum Match {
    No,
    Maybe,
    Yes,
}

impl Scanner {
    /// With `thinking` a thought is open already.
    pub(crate) fn new(calls: bool, thinking: bool) -> Self {
        Self {
            mode: if thinking { Mode::Thinking(THINK[0].1) } else { Mode::Start },
            pending: String::new(),
            calls,
            blank: true,
            line_start: true,
            fenced: false,
            trim: thinking,
        }
    }

    pub(crate) fn push(&mut self, text: String, out: &mut Vec<Segment>) {
        let quiet = self.mode == Mode::Text && self.pending.is_empty() && !self.trim;
        if quiet && !self.may_begin(&text) {
            self.track_position(&text);
            out.push(Segment::Text(text));
            return;
        }
        self.pending.push_str(&text);
        while self.step(out) {}
    }

    /// Whether all text that follows passes unchanged.
    pub(crate) fn is_plain(&self) -> bool {
        self.mode == Mode::Text && !self.calls && self.pending.is_empty() && !self.trim
    }

    /// The text that began like a call, so far.
    pub(crate) fn held(&self) -> Option<&str> {
        (self.mode == Mode::Held).then_some(self.pending.as_str())
    }

    /// The text is over: the returned text began like a call.
    pub(crate) fn finish(&mut self, out: &mut Vec<Segment>) -> Option<String> {
        let rest = std::mem::take(&mut self.pending);
        match self.mode {
            _ if rest.is_empty() => None,
            Mode::Held => Some(rest),
            Mode::Thinking(_) => {
                out.push(Segment::Reasoning(rest));
                None
            }
            Mode::Start | Mode::Text => {
                out.push(Segment::Text(rest));
                None
            }
        }
    }

    /// Whether a call, a code block or a line could begin in this text.
    fn may_begin(&self, text: &str) -> bool {
        self.calls && (self.line_start || memchr::memchr(b'\n', text.as_bytes()).is_some())
    }

    /// Does one thing with the pending text; `false` when more is needed.
    fn step(&mut self, out: &mut Vec<Segment>) -> bool {
        if self.trim {
            self.pending.drain(..self.pending.len() - self.pending.trim_start().len());
            self.trim = self.pending.is_empty();
        }
        match self.mode {
            _ if self.trim => false,
            Mode::Held if self.pending.len() > MAX_HELD_BYTES => {
                self.calls = false;
                self.mode = Mode::Text;
                true
            }
            Mode::Held => false,
            Mode::Start => self.start(),
            Mode::Thinking(close) => self.think(close, out),
            Mode::Text => self.text(out),
        }
    }

    fn start(&mut self) -> bool {
        let trimmed = self.pending.trim_start();
        for (open, close) in THINK {
            if let Some(rest) = trimmed.strip_prefix(open) {
                self.pending = rest.to_owned();
                self.mode = Mode::Thinking(close);
                self.trim = true;
                return true;
            }
        }
        if THINK.iter().any(|(open, _)| open.starts_with(trimmed)) {
            return false;
        }
        self.mode = Mode::Text;
        true
    }

    fn think(&mut self, close: &'static str, out: &mut Vec<Segment>) -> bool {
        if let Some(at) = self.pending.find(close) {
            let rest = self.pending.split_off(at);
            let thought = std::mem::replace(&mut self.pending, rest[close.len()..].to_owned());
            if !thought.trim().is_empty() {
                out.push(Segment::Reasoning(thought.trim_end().to_owned()));
            }
            self.mode = Mode::Text;
            self.trim = true;
            return true;
        }
        // The end of the text may be the beginning of the closing tag, or white space before it.
        let safe = safe_end(&self.pending, close);
        if safe > 0 {
            let rest = self.pending.split_off(safe);
            out.push(Segment::Reasoning(std::mem::replace(&mut self.pending, rest)));
        }
        false
    }

    fn text(&mut self, out: &mut Vec<Segment>) -> bool {
        if !self.calls {
            return self.release(self.pending.len(), out);
        }
        let Some(at) = self.next_beginning() else { return self.release(self.pending.len(), out) };
        if at > 0 {
            return self.release(at, out);
        }
        match self.match_opening() {
            Match::Yes => {
                self.mode = Mode::Held;
                false
            }
            Match::Maybe => false,
            Match::No => {
                let first = self.pending.chars().next().map_or(0, char::len_utf8);
                // A code block's fence is let through as a whole, so that it is counted once.
                let fence = if self.pending.starts_with("```") { 3 } else { first };
                if fence == 3 {
                    self.fenced = !self.fenced;
                }
                self.line_start = false;
                self.release(fence, out)
            }
        }
    }

    /// Where, in the pending text, something that matters could begin.
    fn next_beginning(&self) -> Option<usize> {
        let mut line_start = self.line_start;
        for (at, c) in self.pending.char_indices() {
            match c {
                '\n' => line_start = true,
                _ if c.is_whitespace() => {}
                '`' if line_start => return Some(at),
                '<' | '[' if line_start && !self.fenced => return Some(at),
                '{' if line_start && !self.fenced && self.blank && self.pending[..at].trim().is_empty() => {
                    return Some(at);
                }
                _ => line_start = false,
            }
        }
        None
    }

    fn match_opening(&self) -> Match {
        let text = self.pending.as_str();
        if text.starts_with('{') {
            return call_object(text);
        }
        if text.starts_with('`') {
            return if self.fenced { closing_fence(text) } else { fence(text) };
        }
        if OPENINGS.iter().any(|opening| text.starts_with(opening)) {
            Match::Yes
        } else if OPENINGS.iter().any(|opening| opening.starts_with(text)) {
            Match::Maybe
        } else if text.starts_with('[') && self.blank {
            match text[1..].trim_start() {
                "" => Match::Maybe,
                rest if rest.starts_with('{') => call_object(rest),
                _ => Match::No,
            }
        } else {
            Match::No
        }
    }

    fn release(&mut self, end: usize, out: &mut Vec<Segment>) -> bool {
        if end == 0 {
            return false;
        }
        let rest = self.pending.split_off(end);
        let text = std::mem::replace(&mut self.pending, rest);
        self.track_position(&text);
        out.push(Segment::Text(text));
        !self.pending.is_empty()
    }

    fn track_position(&mut self, text: &str) {
        for c in text.chars() {
            if c == '\n' {
                self.line_start = true;
            } else if !c.is_whitespace() {
                self.line_start = false;
                self.blank = false;
            }
        }
    }
}

/// How much of the text can no longer belong to `close`.
fn safe_end(text: &str, close: &str) -> usize {
    let start = (1..close.len()).rev().find(|length| text.ends_with(&close[..*length])).unwrap_or(0);
    text[..text.len() - start].trim_end().len()
}

/// ```` ```json ```` and the like, followed by what may be a call.
fn fence(text: &str) -> Match {
    if "```".starts_with(text) {
        return Match::Maybe;
    }
    let Some(rest) = text.strip_prefix("```") else { return Match::No };
    let Some((info, body)) = rest.split_once('\n') else {
        return if rest.len() > 20 { Match::No } else { Match::Maybe };
    };
    if !["", "json", "tool_call", "tool_calls", "tool_code", "tool", "function", "function_call", "xml"]
        .contains(&info.trim())
    {
        return Match::No;
    }
    match body.trim_start() {
        "" => Match::Maybe,
        body if body.starts_with('{') => call_object(body),
        body if OPENINGS.iter().any(|opening| body.starts_with(opening)) => Match::Yes,
        body if body.starts_with('<') && OPENINGS.iter().any(|opening| opening.starts_with(body)) => {
            Match::Maybe
        }
        _ => Match::No,
    }
}

fn closing_fence(text: &str) -> Match {
    if text.len() < 3 && "```".starts_with(text) { Match::Maybe } else { Match::No }
}

/// An object whose first member is one that calls begin with.
fn call_object(text: &str) -> Match {
    let body = text[1..].trim_start();
    let Some(quote) = body.chars().next() else { return Match::Maybe };
    if quote != '"' && quote != '\'' {
        return Match::No;
    }
    let Some((key, _)) = body[1..].split_once(quote) else {
        return if body.len() > 20 { Match::No } else { Match::Maybe };
    };
    let known =
        ["name", "tool", "tool_name", "function", "type", "id", "arguments", "parameters", "tool_calls"];
    if known.contains(&key) { Match::Yes } else { Match::No }
}
