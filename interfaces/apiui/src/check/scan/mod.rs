//! How large and how deeply nested a module is, told without a parser. Owns the bounds; knows only the lexical grammar
//! of JavaScript and JSX.
//!
//! The parser, the transform and the printer of trees descend by recursion, so a text such as ten million `(` would
//! end the whole process. Invariant: what passes nests no deeper than the stack of the check allows. To be sure of what
//! is text, pattern, element or code without parsing, the two places where only a parser can tell (`/` or `<` right
//! after a `}` or after the head of an `if`, `for` or `while`) are refused; hardly any code has them.

mod literals;
mod markup;

/// The longest module that is looked at.
const MOST_BYTES: usize = 32 << 20;
/// How many brackets, templates and elements may be open at once.
const MOST_OPEN: usize = 250;
/// How many operators and the like may be chained in the statements that are open at once.
const MOST_LINKS: usize = 20_000;

/// The offset, what was found, and what to do.
pub(super) type Refused = (u32, String, String);

pub(super) fn scan(code: &str) -> Result<(), Refused> {
    if code.len() > MOST_BYTES {
        let what = format!("The module has {} bytes", code.len());
        return Err((0, what, format!("Make it smaller than {MOST_BYTES} bytes.")));
    }
    let mut scan = Scan {
        code,
        at: 0,
        open: vec![Open::new(Frame::Top)],
        previous: Previous::Operator,
        before_paren: Head::No,
        links: 0,
    };
    if code.starts_with("#!") {
        scan.skip_line();
    }
    while scan.at < code.len() {
        match scan.top() {
            Frame::Tag { .. } => scan.tag()?,
            Frame::Children => scan.children()?,
            _ => scan.code()?,
        }
    }
    if scan.open.len() > 1 {
        return Err(scan.refused(
            "Something that was opened is not closed",
            "Look for a missing bracket, quote or closing element.",
        ));
    }
    Ok(())
}

/// What is open.
#[derive(Clone, Copy, PartialEq)]
enum Frame {
    Top,
    Paren {
        head: bool,
    },
    Bracket,
    Brace,
    /// `${` of a template.
    Substitution,
    /// `{` within an element.
    Container,
    /// From `<` to `>`.
    Tag {
        closing: bool,
    },
    /// Between an opening and its closing element.
    Children,
}

struct Open {
    frame: Frame,
    /// Tokens since the last separator that could nest what follows.
    links: usize,
    /// Those that nest across separators.
    kept: usize,
}

impl Open {
    fn new(frame: Frame) -> Self {
        Self { frame, links: 0, kept: 0 }
    }
}

/// What stands before, as far as it decides what `/` and `<` are.
#[derive(Clone, Copy, PartialEq)]
enum Previous {
    /// A value ended: an operator follows.
    Operand,
    /// A value is to follow.
    Operator,
    /// A name follows that is no keyword.
    Dot,
    /// Only a parser knows.
    Unclear,
}

/// Whether the next `(` opens the head of a statement.
#[derive(Clone, Copy, PartialEq)]
enum Head {
    No,
    For,
    Yes,
}

struct Scan<'a> {
    code: &'a str,
    at: usize,
    open: Vec<Open>,
    previous: Previous,
    before_paren: Head,
    /// The sum over all that is open.
    links: usize,
}

impl Scan<'_> {
    fn refused(&self, what: &str, advice: &str) -> Refused {
        (u32::try_from(self.at).unwrap_or(u32::MAX), what.to_owned(), advice.to_owned())
    }

    fn rest(&self) -> &str {
        &self.code[self.at..]
    }

    fn top(&self) -> Frame {
        self.open.last().map_or(Frame::Top, |open| open.frame)
    }

    fn push(&mut self, frame: Frame) -> Result<(), Refused> {
        if self.open.len() >= MOST_OPEN {
            let advice =
                format!("Nest at most {MOST_OPEN} deep: move the inner part into a function or component.");
            return Err(self.refused("Brackets or elements are nested too deep", &advice));
        }
        self.open.push(Open::new(frame));
        Ok(())
    }

    fn pop(&mut self) {
        if let Some(open) = self.open.pop() {
            self.links -= open.links + open.kept;
        }
    }

    fn link(&mut self) -> Result<(), Refused> {
        self.links += 1;
        if let Some(open) = self.open.last_mut() {
            open.links += 1;
        }
        if self.links > MOST_LINKS {
            let advice = "Split the expression or statement into several, with `;` between them.";
            return Err(self.refused("An expression or statement is too long", advice));
        }
        Ok(())
    }

    /// A separator: what follows does not nest in what came before.
    fn separate(&mut self) {
        if let Some(open) = self.open.last_mut() {
            self.links -= open.links;
            open.links = 0;
        }
    }

    fn code(&mut self) -> Result<(), Refused> {
        let Some(first) = self.rest().chars().next() else { return Ok(()) };
        if is_space(first) {
            self.at += first.len_utf8();
            return Ok(());
        }
        if self.comment()? {
            return Ok(());
        }
        match first {
            '"' | '\'' => self.string(first)?,
            '`' => {
                self.link()?;
                self.at += 1;
                return self.template();
            }
            '0'..='9' => self.number(),
            '(' | '[' | '{' => return self.opener(first),
            ')' | ']' | '}' => return self.closer(first),
            '/' => return self.slash(),
            '<' => return self.less(),
            '.' if self.rest().starts_with("...") => {
                self.link()?;
                self.at += 3;
                self.previous = Previous::Operator;
                return Ok(());
            }
            '.' => {
                self.link()?;
                self.at += 1;
                self.previous = if self.rest().starts_with(|next: char| next.is_ascii_digit()) {
                    Previous::Operand
                } else {
                    Previous::Dot
                };
                return Ok(());
            }
            _ if is_name(first) => return self.name(),
            _ => return self.punctuation(first),
        }
        self.previous = Previous::Operand;
        Ok(())
    }

    fn punctuation(&mut self, first: char) -> Result<(), Refused> {
        if matches!(first, ';' | ',') {
            self.separate();
        } else {
            self.link()?;
        }
        let rest = self.rest();
        if rest.starts_with("++") || rest.starts_with("--") {
            self.at += 2;
            return Ok(());
        }
        if rest.starts_with("?.") && !rest[2..].starts_with(|next: char| next.is_ascii_digit()) {
            self.at += 2;
            self.previous = Previous::Dot;
            return Ok(());
        }
        self.at += first.len_utf8();
        self.previous = Previous::Operator;
        Ok(())
    }

    fn opener(&mut self, first: char) -> Result<(), Refused> {
        self.link()?;
        let frame = match first {
            '(' => Frame::Paren { head: self.before_paren != Head::No },
            '[' => Frame::Bracket,
            _ => Frame::Brace,
        };
        self.before_paren = Head::No;
        self.push(frame)?;
        self.at += 1;
        self.previous = Previous::Operator;
        Ok(())
    }

    fn closer(&mut self, first: char) -> Result<(), Refused> {
        let previous = match (self.top(), first) {
            (Frame::Paren { head: true }, ')') => Previous::Unclear,
            (Frame::Paren { head: false }, ')') | (Frame::Bracket, ']') => Previous::Operand,
            (Frame::Brace, '}') => Previous::Unclear,
            (Frame::Substitution, '}') => {
                self.pop();
                self.at += 1;
                return self.template();
            }
            (Frame::Container, '}') => Previous::Operator,
            _ => {
                return Err(self
                    .refused("A closing bracket does not match", "Look for a missing or doubled bracket."));
            }
        };
        self.pop();
        self.at += 1;
        self.previous = previous;
        Ok(())
    }

    /// A division or a pattern.
    fn slash(&mut self) -> Result<(), Refused> {
        self.link()?;
        match self.previous {
            Previous::Operand => {
                self.at += 1;
                self.previous = Previous::Operator;
                Ok(())
            }
            Previous::Operator => {
                self.pattern()?;
                self.previous = Previous::Operand;
                Ok(())
            }
            Previous::Dot | Previous::Unclear => Err(self.refused(
                "A `/` where it is not clear what it means",
                "Put the expression before it, or the pattern, into parentheses.",
            )),
        }
    }

    /// A comparison or an element.
    fn less(&mut self) -> Result<(), Refused> {
        self.link()?;
        let opens = self.rest()[1..].starts_with(|next: char| next == '>' || is_name(next));
        match self.previous {
            Previous::Operator if opens => {
                self.at += 1;
                self.push(Frame::Tag { closing: false })
            }
            Previous::Unclear | Previous::Dot if opens => Err(self.refused(
                "A `<` where it is not clear what it means",
                "Put the element or the comparison into parentheses.",
            )),
            _ => {
                self.at += 1;
                self.previous = Previous::Operator;
                Ok(())
            }
        }
    }

    fn name(&mut self) -> Result<(), Refused> {
        let name = self.take_name();
        if self.previous == Previous::Dot {
            self.previous = Previous::Operand;
            return Ok(());
        }
        let head = std::mem::replace(&mut self.before_paren, Head::No);
        self.previous = match name.as_str() {
            "if" | "while" | "with" | "for" => {
                self.link()?;
                self.before_paren = if name == "for" { Head::For } else { Head::Yes };
                Previous::Operand
            }
            "await" => {
                self.link()?;
                // `for await (…)`
                self.before_paren = if head == Head::For { Head::Yes } else { Head::No };
                Previous::Operator
            }
            // They begin a statement, wherever they stand.
            "const" | "let" | "return" | "throw" | "export" | "switch" => {
                self.separate();
                self.link()?;
                Previous::Operator
            }
            // Each nests in the `if` before, whatever separators stand between.
            "else" => {
                self.link()?;
                if let Some(open) = self.open.last_mut() {
                    open.links -= 1;
                    open.kept += 1;
                }
                Previous::Operator
            }
            "case" | "default" | "delete" | "do" | "extends" | "function" | "import" | "in"
            | "instanceof" | "new" | "try" | "typeof" | "void" | "yield" => {
                self.link()?;
                Previous::Operator
            }
            "of" => Previous::Unclear,
            _ => Previous::Operand,
        };
        Ok(())
    }
}

fn is_line_end(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

fn is_space(character: char) -> bool {
    character.is_whitespace() || character == '\u{feff}'
}

/// Part of a name; a digit is one only inside.
fn is_name(character: char) -> bool {
    character.is_ascii_alphabetic()
        || matches!(character, '_' | '$' | '\\' | '#')
        || (!character.is_ascii() && !is_space(character))
}
