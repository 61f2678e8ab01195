//! Owns the rendering of a chat as the text a model was trained on, by the template of its file.
//! Must not know tokens. Invariant: a template cannot run forever, and no message can steer the model.

use domain::tool::ToolSpec;
use minijinja::{Environment, Error, ErrorKind, Value, context};
use serde_json::json;

use crate::error::ModelError;
use crate::python_json;
use crate::tokenizer::Tokenizer;

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    System,
    User,
    Assistant,
    /// The result of a tool call.
    Tool,
}

/// One message of a chat.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub role: Role,
    pub content: String,
    /// The tool calls of an assistant's message.
    pub calls: Vec<RequestedCall>,
}

/// A tool call as the model asked for it.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestedCall {
    pub name: String,
    pub arguments: serde_json::Value,
}

impl Message {
    pub fn new(role: Role, content: impl Into<String>) -> Message {
        Message { role, content: content.into(), calls: Vec::new() }
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

    /// Whether the template knows how to offer tools to the model.
    pub(crate) fn offers_tools(&self) -> bool {
        offers_tools(&self.source)
    }

    /// The text of a chat, up to where the assistant is to speak.
    pub(crate) fn render(
        &self,
        messages: &[Message],
        tools: &[ToolSpec],
        tokenizer: &Tokenizer,
    ) -> Result<String, ModelError> {
        let (bos_token, eos_token) = tokenizer.start_and_end();
        let messages: Vec<_> = messages.iter().map(|message| message_value(message, tokenizer)).collect();
        let tools = match tools.is_empty() {
            // Templates ask whether there are tools by the truth of this value.
            true => Value::from(()),
            false => Value::from_serialize(tools.iter().map(tool_json).collect::<Vec<_>>()),
        };
        let given = context! {
            messages,
            tools,
            add_generation_prompt => true,
            // Models that can think first would do so for minutes on a CPU.
            enable_thinking => false,
            bos_token,
            eos_token,
        };
        let rendered = environment().render_named_str("chat template", &self.source, given);
        rendered.map_err(|error| ModelError::Template(error.to_string()))
    }
}

/// Whether a chat template knows how to offer tools to the model.
pub(crate) fn offers_tools(template: &str) -> bool {
    template.contains("tools") && template.contains("tool_call")
}

fn message_value(message: &Message, tokenizer: &Tokenizer) -> Value {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let content = tokenizer.escape_specials(&message.content);
    if message.calls.is_empty() {
        return context! { role, content };
    }
    let call = |call: &RequestedCall| json!({"type": "function", "function": {"name": call.name, "arguments": call.arguments}});
    let tool_calls = Value::from_serialize(message.calls.iter().map(call).collect::<Vec<_>>());
    context! { role, content, tool_calls }
}

/// A tool in the form that templates are written for.
fn tool_json(tool: &ToolSpec) -> serde_json::Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.offered_name(),
            "description": tool.description,
            "parameters": tool.input_schema,
        },
    })
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
    environment.add_filter("items", minijinja::filters::items);
    environment.add_filter("list", minijinja::filters::list);
    environment.add_filter("string", |value: Value| value.to_string());
    environment.add_filter("tojson", python_json::filter);
    environment.add_function("namespace", minijinja::functions::namespace);
    environment.add_function("range", minijinja::functions::range);
    environment.add_test("mapping", minijinja::tests::is_mapping);
    environment.add_test("sequence", minijinja::tests::is_sequence);
    environment.add_test("iterable", minijinja::tests::is_iterable);
    environment.add_test("undefined", minijinja::tests::is_undefined);
    environment.add_test("true", minijinja::tests::is_true);
    environment.add_test("false", minijinja::tests::is_false);
    environment.add_test("defined", minijinja::tests::is_defined);
    environment.add_test("none", minijinja::tests::is_none);
    environment.add_test("string", minijinja::tests::is_string);
    environment
}
