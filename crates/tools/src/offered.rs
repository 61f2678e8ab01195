//! From a built-in tool with a typed input to what the engine sees: schema, reading of the input, one adapter.
//!
//! Invariant: a schema is derived from the type that is read, and holds nothing a model does not need.

use std::sync::Arc;

use domain::tool::{Invocation, Scope, TextFormat, ToolEffect, ToolResult};
use domain::tool_call::Origin;
use domain::{Abilities, BoxFuture, Review, Tool, ToolSpec};
use platform::project_files;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Who offers the built-in tools, in names of tools and in rules.
pub const BUILT_IN_SERVER: &str = "eca";

/// A built-in tool: what it is called, what it takes, what it would do, what it does.
pub(crate) trait BuiltInTool: Send + Sync + 'static {
    type Input: DeserializeOwned + JsonSchema + Send;

    const NAME: &'static str;
    const DESCRIPTION: &'static str;
    const EFFECT: ToolEffect;
    /// Other tools whose rules hold for this one too, because it can do what they do.
    const COUNTS_AS: &'static [&'static str] = &[];

    /// The form of its one argument, for models that write it as plain text.
    fn text_format(&self) -> Option<TextFormat> {
        None
    }

    fn is_useful_with(&self, _abilities: &Abilities) -> bool {
        true
    }

    fn prepare(&self) -> impl Future<Output = ()> + Send {
        async {}
    }

    fn review(&self, input: Self::Input, scope: &Scope) -> Result<Review, String>;

    fn remember(&self, _keys: &[String], _scope: &Scope) {}

    /// `Err` is a result that is an error, told to the model as it is.
    fn run(
        &self,
        input: Self::Input,
        call: Invocation,
    ) -> impl Future<Output = Result<ToolResult, String>> + Send;
}

pub(crate) fn into_tool<T: BuiltInTool>(tool: T) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: T::NAME.to_owned(),
        server: BUILT_IN_SERVER.to_owned(),
        origin: Origin::Native,
        description: T::DESCRIPTION.to_owned(),
        input_schema: schema::<T::Input>(),
        effect: T::EFFECT,
    };
    Arc::new(ToolAdapter { spec, tool })
}

struct ToolAdapter<T> {
    spec: ToolSpec,
    tool: T,
}

impl<T: BuiltInTool> Tool for ToolAdapter<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_useful_with(&self, abilities: &Abilities) -> bool {
        self.tool.is_useful_with(abilities)
    }

    fn text_format(&self) -> Option<TextFormat> {
        self.tool.text_format()
    }

    fn counts_as(&self) -> &'static [&'static str] {
        T::COUNTS_AS
    }

    fn prepare(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.tool.prepare())
    }

    fn review(&self, input: &Value, scope: &Scope) -> Result<Review, String> {
        let review = with_secrets(self.tool.review(read::<T>(input)?, scope)?);
        Ok(Review { counts_as: T::COUNTS_AS, ..review })
    }

    fn remember(&self, keys: &[String], scope: &Scope) {
        self.tool.remember(keys, scope);
    }

    fn run<'a>(&'a self, call: Invocation) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let outcome = match read::<T>(&call.input) {
                Ok(input) => self.tool.run(input, call).await,
                Err(problem) => Err(problem),
            };
            outcome.unwrap_or_else(ToolResult::error)
        })
    }
}

/// Names the files among those of a review that are known to hold secrets.
pub(crate) fn with_secrets(mut review: Review) -> Review {
    // A closed file is not read.
    if !review.seals_secrets {
        let named = review.paths.iter().map(|(_, texts)| texts).chain(&review.read_paths);
        let secrets = named.filter(|[_, path]| project_files::is_secret(std::path::Path::new(path)));
        let secrets: Vec<String> = secrets.map(|[shown, _]| shown.clone()).collect();
        review.secrets.extend(secrets);
    }
    review
}

fn read<T: BuiltInTool>(input: &Value) -> Result<T::Input, String> {
    T::Input::deserialize(input).map_err(|error| {
        format!("The input of {} is wrong: {error}. Call it again with that put right.", T::NAME)
    })
}

fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut value = settings.into_generator().into_root_schema_for::<T>().to_value();
    thin(&mut value);
    value
}

/// Drops what costs tokens and tells a model nothing: titles, number formats, `null` beside a type, defaults.
fn thin(value: &mut Value) {
    let Value::Object(object) = value else { return };
    for noise in ["title", "format", "minimum", "default", "$schema"] {
        object.remove(noise);
    }
    if object.get("additionalProperties") == Some(&Value::Bool(true)) {
        object.remove("additionalProperties");
    }
    if let Some(Value::Array(types)) = object.get("type")
        && let [only, null] = types.as_slice()
        && null == "null"
    {
        let only = only.clone();
        object.insert("type".to_owned(), only);
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    unwrap_optional(object);
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(thin);
    }
    if let Some(items) = object.get_mut("items") {
        thin(items);
    }
}

/// `anyOf [T, null]` is how an optional enum is derived; the model needs `T` alone.
fn unwrap_optional(object: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = object.get_mut("anyOf") else { return };
    choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
    if choices.len() == 1
        && let Some(Value::Object(only)) = choices.pop()
    {
        object.remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
}
