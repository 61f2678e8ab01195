//! A Jupyter notebook as text: its cells in order, code in fences, outputs cut.
//!
//! Knows the format nbformat 4. Invariant: no output takes more than its share, and pictures are named, not shown.

use serde_json::Value;

/// Bytes of one output.
const MAX_OUTPUT: usize = 2_000;
/// Bytes of all outputs of one cell.
const MAX_OUTPUTS: usize = 4_000;

pub(super) fn text(bytes: &[u8]) -> Result<String, String> {
    let notebook: Value = serde_json::from_slice(bytes)
        .map_err(|error| format!("The notebook is no valid JSON (line {}).", error.line()))?;
    let cells = notebook["cells"].as_array().ok_or("The notebook has no cells of nbformat 4.")?;
    let language = notebook["metadata"]["language_info"]["name"].as_str();
    let language = language.or_else(|| notebook["metadata"]["kernelspec"]["language"].as_str());
    let mut out = format!("Notebook with {} cells.\n", cells.len());
    for (number, cell) in (1..).zip(cells) {
        write_cell(number, cell, language.unwrap_or("python"), &mut out);
    }
    Ok(out)
}

fn write_cell(number: usize, cell: &Value, language: &str, out: &mut String) {
    let kind = cell["cell_type"].as_str().unwrap_or("raw");
    let source = joined(&cell["source"]);
    let count = cell["execution_count"].as_u64().map(|count| format!(" [{count}]")).unwrap_or_default();
    out.push_str(&format!("\n## Cell {number} ({kind}){count}\n"));
    if kind != "code" {
        out.push_str(&format!("{}\n", source.trim_end()));
        return;
    }
    out.push_str(&format!("```{language}\n{}\n```\n", source.trim_end()));
    let mut left = MAX_OUTPUTS;
    for output in cell["outputs"].as_array().into_iter().flatten() {
        let text = output_text(output);
        let text = cut(text.trim_end(), MAX_OUTPUT.min(left));
        left = left.saturating_sub(text.len());
        if !text.is_empty() {
            out.push_str(&format!("Output:\n{text}\n"));
        }
    }
}

fn output_text(output: &Value) -> String {
    match output["output_type"].as_str() {
        Some("stream") => joined(&output["text"]),
        Some("error") => {
            let part = |name: &str| output[name].as_str().unwrap_or_default();
            format!("{}: {}", part("ename"), part("evalue"))
        }
        _ => {
            let data = output["data"].as_object();
            let plain = data.and_then(|data| data.get("text/plain")).map(joined).unwrap_or_default();
            let images = data.into_iter().flatten().filter(|(kind, _)| kind.starts_with("image/"));
            images.map(|(kind, _)| format!("[{kind}] ")).collect::<String>() + &plain
        }
    }
}

/// A text, or the list of its lines.
fn joined(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let kept = &text[..text.floor_char_boundary(most)];
    format!("{kept}\n[{} more bytes of output]", text.len() - kept.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cells_are_shown_in_order_and_outputs_are_cut() {
        let notebook = json!({
            "metadata": {"kernelspec": {"language": "julia"}}, "nbformat": 4,
            "cells": [
                {"cell_type": "markdown", "source": ["# Title\n", "Words."]},
                {"cell_type": "code", "execution_count": 7, "source": "x = 1\nx", "outputs": [
                    {"output_type": "stream", "name": "stdout", "text": ["a\n", "b\n"]},
                    {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": ["<Figure>"]}},
                    {"output_type": "error", "ename": "ValueError", "evalue": "no"},
                    {"output_type": "stream", "text": "y".repeat(9_000)},
                    {"output_type": "stream", "text": "z".repeat(9_000)},
                ]},
                {"cell_type": "code", "source": [], "outputs": "odd"},
            ],
        });
        let text = text(notebook.to_string().as_bytes()).unwrap();
        let start = "Notebook with 3 cells.\n\n## Cell 1 (markdown)\n# Title\nWords.\n\n## Cell 2 (code) [7]\n```julia\nx = 1\nx\n```\n\
            Output:\na\nb\nOutput:\n[image/png] <Figure>\nOutput:\nValueError: no\nOutput:\nyyy";
        assert!(text.starts_with(start), "{text}");
        assert!(!text.contains("AAAA") && text.contains("more bytes of output]"), "{text}");
        assert!(text.len() < 5_000, "{}", text.len());
        for broken in ["", "{", "[]", "{\"cells\": 1}", "{\"worksheets\": []}"] {
            assert!(super::text(broken.as_bytes()).is_err(), "{broken}");
        }
    }
}
