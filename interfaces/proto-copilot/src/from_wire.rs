//! From the contract's params to what `apiui` takes. No IO, no wait.
//!
//! Invariant: nothing larger than the limit is parsed; a wrong parameter is named.

use apiui::customize::Turn;
use apiui::plan::Options;
use apiui::read::{LIMIT_BYTES, Reading, read_bytes, read_value};
use rpc::{Fault, Params};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::to_wire;
use crate::wire::{GenerateOptions, GenerateParams, Message};

/// Params as `T`, or -32602 with what is wrong.
pub(crate) fn decode<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Result<T, Fault> {
    if params.is_some_and(|raw| raw.get().starts_with('[')) {
        return Err(Fault::invalid_params("params are an object with named members."));
    }
    Params::from(params).decode()
}

/// Reads a specification in any of its forms.
pub(crate) fn spec(raw: Option<&RawValue>) -> Result<Reading, Fault> {
    let raw = raw.ok_or_else(|| {
        Fault::invalid_params("spec is missing. Send the NormalizedSpec, or the specification itself.")
    })?;
    let is_text = raw.get().starts_with('"');
    if !is_text && raw.get().len() > LIMIT_BYTES {
        let (found, most) = (raw.get().len() >> 20, LIMIT_BYTES >> 20);
        return Err(to_wire::too_large(format!(
            "The specification is {found} MB; at most {most} MB are read. Send the part with the operations you need."
        )));
    }
    if !is_text && !raw.get().starts_with('{') {
        return Err(Fault::invalid_params("spec is an object or a text."));
    }
    let reading = match serde_json::from_str::<Value>(raw.get()) {
        Ok(value) => read_value(&value, None),
        // Too deep, or a number beyond every range: the framing lets that pass, and the reader tells its place.
        Err(_) => read_bytes(raw.get().as_bytes(), None, None),
    };
    reading.map_err(|unusable| to_wire::unusable(&unusable))
}

/// Only React is written.
pub(crate) fn format(params: &GenerateParams<'_>) -> Result<(), Fault> {
    match params.format.as_deref() {
        None | Some("react") => Ok(()),
        Some(other) => {
            let other: String = other.chars().take(40).collect();
            Err(Fault::invalid_params(format!("format “{other}” is not supported. Send \"react\".")))
        }
    }
}

/// What is not known is assumed to be the default, and said.
pub(crate) fn options(theme: Option<&str>, options: Option<GenerateOptions>) -> Options {
    let options = options.and_then(|options| serde_json::to_value(options).ok());
    Options::from_host(theme, options.as_ref())
}

/// The conversation so far; a content that is not text counts as none.
pub(crate) fn history(messages: Option<Vec<Message>>) -> Vec<Turn> {
    let messages = messages.unwrap_or_default().into_iter();
    let turns = messages.map(|message| Turn {
        role: message.role,
        content: message.content.as_str().unwrap_or_default().to_owned(),
    });
    turns.collect()
}
