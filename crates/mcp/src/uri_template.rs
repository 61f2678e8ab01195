//! Templates for the addresses of resources (RFC 6570), as far as typing needs them: which variable is being typed.
//!
//! Pure. Templates with several variables in one expression are listed and not completed: the server expands them anyway.

/// A longer template is not read.
const MAX_LENGTH: usize = 2 << 10;

#[derive(PartialEq, Eq, Debug)]
pub(crate) struct UriTemplate(Vec<TemplatePart>);

#[derive(PartialEq, Eq, Debug)]
enum TemplatePart {
    Literal(String),
    Variable {
        name: String,
        /// Slashes and the like stay as they are (`{+path}`).
        is_reserved: bool,
    },
}

/// A typed address that begins as a template does.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct TypedUri {
    /// Nothing of the template is missing.
    pub is_whole: bool,
    /// The variables before the one that is typed, with their values.
    pub earlier: Vec<(String, String)>,
    pub open: Option<OpenVariable>,
}

/// The variable at the end of what is typed.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct OpenVariable {
    pub name: String,
    pub value: String,
    before: String,
    is_reserved: bool,
    /// The rest of the template; `None`: other variables follow.
    rest: Option<String>,
}

impl UriTemplate {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((literal, behind)) = rest.split_once('{') {
            let (expression, after) = behind.split_once('}')?;
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(literal.to_owned()));
            }
            parts.push(variable(expression)?);
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Literal(rest.to_owned()));
        }
        parts.iter().any(|part| matches!(part, TemplatePart::Variable { .. })).then_some(Self(parts))
    }

    /// Reads a typed text as the beginning of an address; `None`: it is not one of this template.
    pub(crate) fn read(&self, typed: &str) -> Option<TypedUri> {
        let (mut earlier, mut at) = (Vec::new(), 0);
        for (index, part) in self.0.iter().enumerate() {
            let left = &typed[at..];
            match part {
                TemplatePart::Literal(literal) => {
                    left.strip_prefix(literal.as_str())?;
                    at += literal.len();
                }
                TemplatePart::Variable { name, is_reserved } => {
                    let next = match self.0.get(index + 1) {
                        Some(TemplatePart::Literal(literal)) => left.find(literal.as_str()),
                        Some(TemplatePart::Variable { .. }) | None => None,
                    };
                    let Some(length) = next else {
                        return self.open(index, typed, at, earlier);
                    };
                    if length == 0 || (!is_reserved && left[..length].contains('/')) {
                        return None;
                    }
                    earlier.push((name.clone(), left[..length].to_owned()));
                    at += length;
                }
            }
        }
        (at == typed.len()).then_some(TypedUri { is_whole: true, earlier, open: None })
    }

    /// The only variable of the template with nothing typed.
    pub(crate) fn read_nothing(&self) -> Option<TypedUri> {
        let is_variable = |part: &TemplatePart| matches!(part, TemplatePart::Variable { .. });
        match self.0.as_slice() {
            [TemplatePart::Literal(before), rest @ ..]
                if rest.iter().filter(|it| is_variable(it)).count() == 1 =>
            {
                self.open(1, before, before.len(), Vec::new())
            }
            _ => None,
        }
    }

    fn open(&self, index: usize, typed: &str, at: usize, earlier: Vec<(String, String)>) -> Option<TypedUri> {
        let TemplatePart::Variable { name, is_reserved } = self.0.get(index)? else { return None };
        let value = typed[at..].to_owned();
        if !is_reserved && value.contains('/') {
            return None;
        }
        let rest = match &self.0[index + 1..] {
            [] => Some(String::new()),
            [TemplatePart::Literal(rest)] => Some(rest.clone()),
            _ => None,
        };
        let is_whole = !value.is_empty() && rest.as_deref() == Some("");
        let (name, before, is_reserved) = (name.clone(), typed[..at].to_owned(), *is_reserved);
        Some(TypedUri {
            is_whole,
            earlier,
            open: Some(OpenVariable { name, value, before, is_reserved, rest }),
        })
    }
}

impl OpenVariable {
    /// The address with this value; `None` where other variables follow.
    pub(crate) fn fill(&self, value: &str) -> Option<String> {
        Some(format!("{}{}{}", self.before, encode(value, self.is_reserved), self.rest.as_ref()?))
    }
}

/// `name`, `+name`, `name*` or `name:3`; `None` for several variables and for operators that write more than a value.
fn variable(expression: &str) -> Option<TemplatePart> {
    let is_reserved = expression.starts_with('+');
    let name = expression.trim_start_matches('+').trim_end_matches('*');
    let name = name.split(':').next().unwrap_or(name);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '%' | '-');
    let is_plain = !name.is_empty() && name.chars().all(is_name) && !name.starts_with('.');
    is_plain.then(|| TemplatePart::Variable { name: name.to_owned(), is_reserved })
}

fn encode(value: &str, is_reserved: bool) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if is_plain || (is_reserved && b":/?#[]@!$&'()*+,;=%".contains(&byte)) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_address_is_whole_or_has_an_open_variable() {
        for (template, typed, expected) in [
            ("note://{id}", "note://4", Some((true, Some(("id", "4"))))),
            ("note://{id}", "note://", Some((false, Some(("id", ""))))),
            ("note://{id}", "note://a/b", None),
            ("note://{id}", "not", None),
            ("file:///{+path}", "file:///a/b", Some((true, Some(("path", "a/b"))))),
            ("repo://{owner}/{name}/readme", "repo://me", Some((false, Some(("owner", "me"))))),
            ("repo://{owner}/{name}/readme", "repo://me/d", Some((false, Some(("name", "d"))))),
            ("repo://{owner}/{name}/readme", "repo://me/d/readme", Some((true, None))),
            ("repo://{owner}/{name}/readme", "repo://me/d/readme/more", None),
        ] {
            let read = UriTemplate::parse(template).unwrap().read(typed);
            let shown = read.as_ref().map(|read| {
                let open = read.open.as_ref().map(|open| (open.name.as_str(), open.value.as_str()));
                (read.is_whole, open)
            });
            assert_eq!(shown, expected, "{template} {typed}");
        }
    }

    #[test]
    fn a_value_is_put_in_its_place() {
        let fill = |template: &str, typed: &str, value: &str| {
            UriTemplate::parse(template).unwrap().read(typed)?.open?.fill(value)
        };
        assert_eq!(fill("note://{id}", "note://", "a b/ä").as_deref(), Some("note://a%20b%2F%C3%A4"));
        assert_eq!(fill("file:///{+path}", "file:///s", "src/a b").as_deref(), Some("file:///src/a%20b"));
        assert_eq!(fill("r://{a}/{b}/x", "r://me/", "d").as_deref(), Some("r://me/d/x"));
        assert_eq!(fill("r://{a}/{b}/x", "r://m", "me"), None, "another variable follows");
        let only = UriTemplate::parse("note://{id}/text").unwrap().read_nothing().unwrap();
        assert_eq!(only.open.unwrap().fill("7").as_deref(), Some("note://7/text"));
        assert_eq!(UriTemplate::parse("r://{a}/{b}").unwrap().read_nothing(), None);
    }

    #[test]
    fn what_is_no_simple_template_is_left_alone() {
        for text in ["plain://address", "a{", "a{}", "a{?x,y}", "a{x,y}", "a{/x}", "a{b"] {
            assert_eq!(UriTemplate::parse(text), None, "{text}");
        }
        let names = UriTemplate::parse("a{x*}b{y:3}").unwrap();
        assert_eq!(names.read("a1b2").unwrap().open.unwrap().name, "y");
    }
}
