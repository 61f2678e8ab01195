//! Versions of an interface: every generation, change and return is one, in order, and none is ever removed.
//!
//! Invariants: code that the checker refuses never becomes a version; numbers rise without gaps; the code is in the
//! archive before the version is named anywhere.

use std::fmt::Write as _;
use std::sync::Arc;

use apiui::check::{Refusal, check};
use axum::http::StatusCode;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tools::edit::line_diff::{Side, compare};
use web::ApiError;

use crate::console::{EntryKind, Level};
use crate::model::{TabRecord, ToolUse, Version, VersionKind, now};
use crate::studio::{Studio, no_tab, not_kept};

/// Scripts that are kept compiled.
const MOST_SCRIPTS: usize = 24;
/// Lines around a change.
const CONTEXT: usize = 3;
/// Lines of a difference that are shown.
const MOST_LINES: usize = 4000;
const DIFF_TIME: std::time::Duration = std::time::Duration::from_secs(2);

/// A version to be.
pub(crate) struct NewVersion {
    pub kind: VersionKind,
    pub code: String,
    pub description: String,
    pub prompt: Option<String>,
    pub assumptions: Vec<String>,
    pub reverted_from: Option<u64>,
    pub tools: Vec<ToolUse>,
}

impl Studio {
    /// Checks the code and makes it the newest version and the current one.
    pub(crate) async fn add_version(&self, tab: &str, new: NewVersion) -> Result<Version, ApiError> {
        self.publish(
            "progress",
            &json!({"tab": tab, "phase": "checking", "chunk": null, "received": new.code.len()}),
        );
        let code = Arc::new(new.code);
        let checked = code.clone();
        let outcome = tokio::task::spawn_blocking(move || check(&checked)).await;
        match outcome {
            Ok(Ok(_)) => {}
            Ok(Err(refusals)) => return Err(self.refuse_code(tab, &refusals)),
            Err(_) => return Err(ApiError::internal("The check of the code broke off.")),
        }
        let version = {
            let model = self.model();
            let tab = model.tab(tab).ok_or_else(no_tab)?;
            Version {
                number: tab.versions.last().map_or(1, |last| last.number + 1),
                parent: tab.current,
                kind: new.kind,
                description: new.description,
                prompt: new.prompt,
                assumptions: new.assumptions,
                hash: hash(&code),
                size: code.len(),
                time: now(),
                reverted_from: new.reverted_from,
                tools: new.tools,
            }
        };
        self.archive.add_code(tab, version.number, &code).await.map_err(|failure| not_kept(&failure))?;
        let added = version.clone();
        self.change_tab(tab, |tab| {
            tab.current = Some(added.number);
            tab.problem = None;
            tab.versions.push(added);
            Ok(())
        })
        .await?;
        let shown = version.shown(&self.model().plugins);
        self.publish("version", &json!({"tab": tab, "version": shown}));
        if !version.tools.is_empty() {
            self.show_plugins();
        }
        Ok(version)
    }

    fn refuse_code(&self, tab: &str, refusals: &[Refusal]) -> ApiError {
        let first = refusals.first().map(ToString::to_string).unwrap_or_default();
        let message = format!("The code was refused: {first}");
        self.log(Some(tab), EntryKind::Studio, Level::Warning, &message, None);
        ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "refused", message)
            .hint("The last good version stays. Say it in other words, or try again.")
            .data(json!({"refusals": refusals}))
    }

    pub(crate) fn versions(&self, tab: &str, before: Option<u64>, limit: usize) -> Result<Value, ApiError> {
        let model = self.model();
        let tab = model.tab(tab).ok_or_else(no_tab)?;
        let mut older =
            tab.versions.iter().rev().filter(|one| before.is_none_or(|before| one.number < before));
        let page: Vec<Value> =
            older.by_ref().take(limit.clamp(1, 200)).map(|one| one.shown(&model.plugins)).collect();
        Ok(json!({"versions": page, "more": older.next().is_some()}))
    }

    pub(crate) fn version(&self, tab: &str, number: u64) -> Result<Version, ApiError> {
        let model = self.model();
        let tab = model.tab(tab).ok_or_else(no_tab)?;
        tab.version(number).cloned().ok_or_else(|| ApiError::not_found("There is no such version."))
    }

    pub(crate) async fn code(&self, tab: &str, number: u64) -> Result<String, ApiError> {
        let version = self.version(tab, number)?;
        let code = self.archive.code(tab, number).await.map_err(|failure| not_kept(&failure))?;
        // What the store gives must be what was checked.
        code.filter(|code| hash(code) == version.hash)
            .ok_or_else(|| ApiError::internal(format!("The code of version {number} is damaged.")))
    }

    /// The version as a script for the frame.
    pub(crate) async fn script(&self, tab: &str, number: u64) -> Result<(Arc<str>, String), ApiError> {
        let version = self.version(tab, number)?;
        if let Some(script) = self.model().scripts.get(&version.hash).cloned() {
            return Ok((script, version.hash));
        }
        let code = self.code(tab, number).await?;
        let made = tokio::task::spawn_blocking(move || apiui::check::frame_script(&code)).await;
        let script: Arc<str> = match made {
            Ok(Ok(script)) => script.into(),
            Ok(Err(refusals)) => return Err(self.refuse_code(tab, &refusals)),
            Err(_) => return Err(ApiError::internal("The compilation broke off.")),
        };
        let mut model = self.model();
        if model.scripts.len() >= MOST_SCRIPTS {
            model.scripts.clear();
        }
        model.scripts.insert(version.hash.clone(), script.clone());
        Ok((script, version.hash))
    }

    pub(crate) async fn revert(
        &self,
        tab: &str,
        number: u64,
        reason: Option<&str>,
    ) -> Result<Version, ApiError> {
        let version = self.version(tab, number)?;
        let code = self.code(tab, number).await?;
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let description = format!("Back to version {number} ({}){reason}", version.description);
        let new = NewVersion {
            kind: VersionKind::Rollback,
            code,
            description,
            prompt: None,
            assumptions: Vec::new(),
            reverted_from: Some(number),
            tools: version.tools,
        };
        self.add_version(tab, new).await
    }

    /// The frame has shown a version, or it stopped with an error. Then the last good one comes back.
    pub(crate) async fn take_outcome(
        &self,
        tab: &str,
        number: u64,
        fault: Option<&str>,
    ) -> Result<Option<Version>, ApiError> {
        self.version(tab, number)?;
        let Some(fault) = fault else {
            self.change_tab(tab, |tab| {
                tab.last_safe = Some(number);
                Ok(())
            })
            .await?;
            return Ok(None);
        };
        let fault: String = fault.chars().filter(|c| !c.is_control()).take(300).collect();
        let message = format!("Version {number} stopped with an error: {fault}");
        self.log(Some(tab), EntryKind::Frame, Level::Error, &message, None);
        let safe = {
            let model = self.model();
            let tab = model.tab(tab).ok_or_else(no_tab)?;
            if tab.current != Some(number) {
                return Ok(None);
            }
            safe_version(tab, number)
        };
        if let Some(safe) = safe {
            return self.revert(tab, safe, Some(&message)).await.map(Some);
        }
        let problem = ApiError::new(StatusCode::OK, "refused", message)
            .hint("Generate the interface again, or go back to another version.");
        self.change_tab(tab, |tab| {
            tab.problem = Some(crate::studio::problem_of(&problem));
            Ok(())
        })
        .await?;
        Ok(None)
    }

    pub(crate) async fn diff(&self, tab: &str, from: u64, to: u64) -> Result<Value, ApiError> {
        let (left, right) = (self.code(tab, from).await?, self.code(tab, to).await?);
        let made = tokio::task::spawn_blocking(move || difference(&left, &right));
        made.await.map_err(|_| ApiError::internal("The comparison broke off."))
    }
}

/// The newest version that was shown without an error and has other code than the one that failed.
fn safe_version(tab: &TabRecord, failed: u64) -> Option<u64> {
    let failed = tab.version(failed)?;
    let safe = tab.version(tab.last_safe?)?;
    (safe.hash != failed.hash).then_some(safe.number)
}

fn difference(left: &str, right: &str) -> Value {
    let (mut added, mut removed, mut shown) = (0_usize, 0_usize, 0_usize);
    let mut hunks = Vec::new();
    for hunk in compare(left, right, CONTEXT, std::time::Instant::now() + DIFF_TIME) {
        let mut lines = Vec::new();
        for (side, line) in hunk.lines {
            let kind = match side {
                Side::Both => "same",
                Side::Old => "removed",
                Side::New => "added",
            };
            removed += usize::from(side == Side::Old);
            added += usize::from(side == Side::New);
            shown += 1;
            if shown <= MOST_LINES {
                let text: String = line.trim_end_matches(['\n', '\r']).chars().take(2000).collect();
                lines.push(json!({"kind": kind, "text": text}));
            }
        }
        if !lines.is_empty() {
            hunks.push(json!({"left": hunk.old, "right": hunk.new, "lines": lines}));
        }
    }
    json!({"hunks": hunks, "added": added, "removed": removed, "isCut": shown > MOST_LINES})
}

fn hash(code: &str) -> String {
    Sha256::digest(code.as_bytes()).iter().fold(String::with_capacity(64), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}
