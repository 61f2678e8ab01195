//! One word of a shell line: what it says when the shell has taken its quotes away.
//!
//! Invariant: a word is read only when nothing is put in its place: no variable, no command, no braces.

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Word {
    pub text: String,
    /// Where in `text` an unquoted `*`, `?` or `[` is first.
    pub pattern_at: Option<usize>,
    /// It begins with an unquoted `~`.
    pub tilde: bool,
    /// Where it ends in the line that was parsed.
    pub end: usize,
}

impl Word {
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Reads a word as it is written; `Err` says what the shell would put in its place.
    pub fn read(raw: &str) -> Result<Self, &'static str> {
        Reader { chars: raw.chars().peekable(), word: Self::default() }.read(raw)
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// A pattern that could stand for an option.
    pub fn may_be_option(&self) -> bool {
        self.pattern_at == Some(0)
    }
}

const EXPANSION: &str = "It puts in a value or the output of a command ($…)";
const BRACES: &str = "It has a brace expansion";
const STRANGE: &str = "It has syntax that is not analyzed";

struct Reader<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    word: Word,
}

impl Reader<'_> {
    fn read(mut self, raw: &str) -> Result<Word, &'static str> {
        if raw == "{}" {
            return Ok(Word::plain(raw));
        }
        let mut first = true;
        while let Some(char) = self.chars.next() {
            match char {
                '\\' => match self.chars.next() {
                    Some('\n') => {}
                    Some(escaped) => self.word.text.push(escaped),
                    None => return Err(STRANGE),
                },
                '\'' => self.single()?,
                '"' => self.double()?,
                '`' => return Err(EXPANSION),
                '$' => self.dollar(false)?,
                '{' | '}' => return Err(BRACES),
                '*' | '?' | '[' => {
                    self.word.pattern_at.get_or_insert(self.word.text.len());
                    self.word.text.push(char);
                }
                '~' if first => {
                    self.word.tilde = true;
                    self.word.text.push(char);
                }
                '#' if first => return Err(STRANGE),
                ';' | '|' | '&' | '<' | '>' | '(' | ')' => return Err(STRANGE),
                _ if char.is_whitespace() || char.is_control() => return Err(STRANGE),
                _ => self.word.text.push(char),
            }
            first = false;
        }
        Ok(self.word)
    }

    fn single(&mut self) -> Result<(), &'static str> {
        loop {
            match self.chars.next().ok_or(STRANGE)? {
                '\'' => return Ok(()),
                char => self.word.text.push(char),
            }
        }
    }

    fn double(&mut self) -> Result<(), &'static str> {
        loop {
            match self.chars.next().ok_or(STRANGE)? {
                '"' => return Ok(()),
                '`' => return Err(EXPANSION),
                '$' => self.dollar(true)?,
                '\\' => match self.chars.next().ok_or(STRANGE)? {
                    '\n' => {}
                    char @ ('$' | '`' | '"' | '\\') => self.word.text.push(char),
                    char => self.word.text.extend(['\\', char]),
                },
                char => self.word.text.push(char),
            }
        }
    }

    /// A dollar sign that nothing follows which could be put in stands for itself.
    fn dollar(&mut self, quoted: bool) -> Result<(), &'static str> {
        match self.chars.peek() {
            None => {}
            Some('"') if quoted => {}
            Some(char) if char.is_ascii_alphanumeric() || "_{([$'\"*@#?!-`".contains(*char) => {
                return Err(EXPANSION);
            }
            Some(_) => {}
        }
        self.word.text.push('$');
        Ok(())
    }
}
