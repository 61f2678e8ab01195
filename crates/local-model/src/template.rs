//! Owns the rendering of a chat as the text a model was trained on, by the template of its file.
//! Must not know tokens. Invariant: a template cannot run forever, and no message can steer the model.

use minijinja::{Environment, Error, ErrorKind, context};

use crate::error::ModelError;
use crate::tokenizer::Tokenizer;

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    System,
    User,
    Assistant,
}

/// One message of a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub role: Role,
    pub content: String,
}

impl Message {
    pub fn new(role: Role, content: impl Into<String>) -> Message {
        Message { role, content: content.into() }
    }
}

/// The chat template of a model.
pub(crate) struct Template {
    source: String,
}

/// For files that carry no template but the marks of this form.
const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' + message.content + \
    '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
/// Steps of the template engine; a long chat needs some thousands.
const FUEL: u64 = 1_000_000;
/// A longer template is not a chat template.
const TEMPLATE_LIMIT: usize = 1 << 17;

impl Template {
    pub(crate) fn new(source: Option<&str>) -> Result<Template, ModelError> {
        let source = source.unwrap_or(CHATML).to_owned();
        if source.len() > TEMPLATE_LIMIT {
            return Err(ModelError::Template("it is too long".into()));
        }
        Ok(Template { source })
    }

    /// The text of a chat, up to where the assistant is to speak.
    pub(crate) fn render(&self, messages: &[Message], tokenizer: &Tokenizer) -> Result<String, ModelError> {
        let (bos_token, eos_token) = tokenizer.start_and_end();
        let message = |message: &Message| {
            let role = match message.role {
                Role::System => "system",
                Role::User => "user",
                Role::Assistant => "assistant",
            };
            context! { role, content => tokenizer.escape_specials(&message.content) }
        };
        let messages: Vec<_> = messages.iter().map(message).collect();
        let given = context! { messages, add_generation_prompt => true, bos_token, eos_token };
        let rendered = environment().render_named_str("chat template", &self.source, given);
        rendered.map_err(|error| ModelError::Template(error.to_string()))
    }
}

/// As the library that templates are written for sets its engine up.
fn environment() -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_fuel(Some(FUEL));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", |message: String| -> Result<String, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
    environment.add_filter("trim", minijinja::filters::trim);
    environment.add_filter("length", minijinja::filters::length);
    environment.add_filter("join", minijinja::filters::join);
    environment.add_filter("default", minijinja::filters::default);
    environment.add_filter("upper", minijinja::filters::upper);
    environment.add_filter("lower", minijinja::filters::lower);
    environment.add_test("defined", minijinja::tests::is_defined);
    environment.add_test("none", minijinja::tests::is_none);
    environment.add_test("string", minijinja::tests::is_string);
    environment
}
