//! What a command printed and left behind, for people while it runs and for the model at its end. Starts nothing.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::tool::{ToolContext, ToolResult};
use platform::project_files;
use process::{End, Finished};

/// Removes what a command made that nobody approved and that other programs would run; names it for the model.
pub(super) fn take_back(missing: &[PathBuf]) -> Option<String> {
    let mut removed = Vec::new();
    for path in missing {
        if project_files::remove_entry(path).is_ok() {
            removed.push(path.display().to_string());
        }
    }
    (!removed.is_empty()).then(|| {
        format!(
            "[The sandbox removed {}: other programs would run it. To ask the user for it, repeat the call with \
             grants: run-later.]",
            removed.join(", ")
        )
    })
}

/// Bytes as they come, shown as whole characters.
pub(super) struct OutputStream {
    context: Arc<dyn ToolContext>,
    rest: Mutex<Vec<u8>>,
}

impl OutputStream {
    pub(super) fn new(context: Arc<dyn ToolContext>) -> Self {
        Self { context, rest: Mutex::default() }
    }

    pub(super) fn push(&self, bytes: &[u8]) {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        rest.extend_from_slice(bytes);
        let complete = match std::str::from_utf8(&rest) {
            Ok(_) => rest.len(),
            // A character that is not there in whole yet waits for the rest of it.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => rest.len(),
        };
        let ready: Vec<u8> = rest.drain(..complete).collect();
        if !ready.is_empty() {
            self.context.output(&String::from_utf8_lossy(&ready));
        }
    }

    pub(super) fn finish(&self) {
        let rest = std::mem::take(&mut *self.rest.lock().unwrap_or_else(PoisonError::into_inner));
        if !rest.is_empty() {
            self.context.output(&String::from_utf8_lossy(&rest));
        }
    }
}

pub(super) fn describe_result(finished: &Finished, time: Duration) -> ToolResult {
    let output = finished.stdout.text();
    let output = output.trim_end();
    let output = if output.is_empty() { "(no output)" } else { output };
    let notice = match finished.end {
        End::Exited(0) => return ToolResult::text(output),
        End::Exited(code) => format!("[exit code {code}]"),
        End::Signalled(signal) => format!("[ended by signal {signal}]"),
        End::DeadlinePassed => format!(
            "[ended after {} ms; give a longer timeout or run it in the background]",
            time.as_millis()
        ),
        End::Stopped => "[stopped by the user]".to_owned(),
    };
    ToolResult { error: true, ..ToolResult::text(format!("{output}\n{notice}")) }
}
