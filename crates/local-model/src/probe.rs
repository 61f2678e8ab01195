//! Owns measuring how fast this machine computes, without any model file: weights like those of a real model, made up here,
//! run for a moment. Must not know which models there are.
//! Invariant: the made-up weights are larger than the caches of usual processors, as those of real models are.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::session::{Limits, Session};

/// The sizes of Qwen2.5-Coder 1.5B, with fewer layers.
const EMBEDDING: u64 = 1536;
const FEED_FORWARD: u64 = 8960;
const KEYS: u64 = 256;
const HEADS: u32 = 12;
const LAYERS: u32 = 4;
const TOKENS: u32 = 256;

const F32: u32 = 0;
/// The format of most matrices of a Q4_K_M file: 256 weights in 144 bytes.
const Q4_K: u32 = 12;
const BLOCK: [u64; 2] = [256, 144];

const WINDOW: usize = 512;

/// Bytes of weights that decoding reads in a second; about the same for every model in this format.
pub fn weights_per_second(threads: usize, time: Duration) -> Option<f64> {
    let (file, weights) = model_file();
    let engine = Arc::new(Engine::read(Arc::new(file)).ok()?);
    let mut session = Session::new(engine, Limits { window: WINDOW, threads });
    let (mut tokens, stop, mut count) = (vec![1, 2, 3], AtomicBool::new(false), 0_u32);
    // The first pass touches all memory.
    session.logits(&tokens, &stop).ok()??;
    let begin = Instant::now();
    while begin.elapsed() < time && tokens.len() + 1 < WINDOW {
        tokens.push(count % TOKENS);
        session.logits(&tokens, &stop).ok()??;
        count += 1;
    }
    let seconds = begin.elapsed().as_secs_f64();
    (count > 0 && seconds > 0.0).then(|| f64::from(count) * weights as f64 / seconds)
}

/// A model file and the bytes of its weights.
fn model_file() -> (Vec<u8>, u64) {
    let tensors = tensors();
    let mut file = b"GGUF".to_vec();
    file.extend(3_u32.to_le_bytes());
    file.extend((tensors.len() as u64).to_le_bytes());
    let (metadata, count) = metadata();
    file.extend(u64::to_le_bytes(count));
    file.extend(metadata);
    let mut offset = 0;
    for (name, columns, rows) in &tensors {
        text(&mut file, name);
        let format = format_of(*rows);
        let shape = if *rows == 1 { vec![*columns] } else { vec![*columns, *rows] };
        file.extend((shape.len() as u32).to_le_bytes());
        shape.iter().for_each(|size| file.extend(size.to_le_bytes()));
        file.extend(format.to_le_bytes());
        file.extend(u64::to_le_bytes(offset));
        offset += size(*columns, *rows);
    }
    file.resize(file.len().next_multiple_of(32), 0);
    for (_, columns, rows) in &tensors {
        let end = file.len() + size(*columns, *rows) as usize;
        let unit = if format_of(*rows) == F32 { 1_f32.to_le_bytes().to_vec() } else { block().to_vec() };
        file.extend(unit.iter().cycle().take(end - file.len()));
    }
    (file, offset)
}

/// Vectors are whole numbers, matrices are packed.
fn format_of(rows: u64) -> u32 {
    if rows == 1 { F32 } else { Q4_K }
}

/// Bytes of a tensor; all of them are multiples of 32.
fn size(columns: u64, rows: u64) -> u64 {
    if rows == 1 { columns * 4 } else { columns * rows / BLOCK[0] * BLOCK[1] }
}

/// Weights near zero, so that the numbers stay finite.
fn block() -> [u8; 144] {
    let mut block = [0x5a; 144];
    // Two scales of half precision: 2^-12.
    block[..4].copy_from_slice(&[0, 0x0c, 0, 0x0c]);
    block
}

/// Names, columns and rows.
fn tensors() -> Vec<(String, u64, u64)> {
    let mut tensors = vec![
        ("token_embd.weight".to_owned(), EMBEDDING, u64::from(TOKENS)),
        ("output_norm.weight".to_owned(), EMBEDDING, 1),
    ];
    for layer in 0..LAYERS {
        let parts = [
            ("attn_norm", EMBEDDING, 1),
            ("ffn_norm", EMBEDDING, 1),
            ("attn_q", EMBEDDING, EMBEDDING),
            ("attn_k", EMBEDDING, KEYS),
            ("attn_v", EMBEDDING, KEYS),
            ("attn_output", EMBEDDING, EMBEDDING),
            ("ffn_gate", EMBEDDING, FEED_FORWARD),
            ("ffn_up", EMBEDDING, FEED_FORWARD),
            ("ffn_down", FEED_FORWARD, EMBEDDING),
        ];
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        tensors.extend(parts.map(|(part, columns, rows)| (name(part), columns, rows)));
    }
    tensors
}

/// The entries that a model file must have, and their number.
fn metadata() -> (Vec<u8>, u64) {
    let mut entries = Vec::new();
    let texts = [
        ("general.architecture", "llama"),
        ("tokenizer.ggml.model", "gpt2"),
        ("tokenizer.ggml.pre", "smollm"),
    ];
    for (key, value) in texts {
        text(&mut entries, key);
        entries.extend(8_u32.to_le_bytes());
        text(&mut entries, value);
    }
    let numbers = [
        ("llama.block_count", LAYERS),
        ("llama.context_length", WINDOW as u32),
        ("llama.embedding_length", EMBEDDING as u32),
        ("llama.feed_forward_length", FEED_FORWARD as u32),
        ("llama.attention.head_count", HEADS),
        ("llama.attention.head_count_kv", HEADS * KEYS as u32 / EMBEDDING as u32),
        ("tokenizer.ggml.eos_token_id", TOKENS - 1),
    ];
    for (key, value) in numbers {
        text(&mut entries, key);
        entries.extend(4_u32.to_le_bytes());
        entries.extend(value.to_le_bytes());
    }
    let tokens = (0..TOKENS).map(|number| format!("t{number}"));
    let lists: [(&str, Vec<String>); 2] =
        [("tokenizer.ggml.tokens", tokens.collect()), ("tokenizer.ggml.merges", Vec::new())];
    for (key, values) in &lists {
        text(&mut entries, key);
        entries.extend(9_u32.to_le_bytes());
        entries.extend(8_u32.to_le_bytes());
        entries.extend((values.len() as u64).to_le_bytes());
        values.iter().for_each(|value| text(&mut entries, value));
    }
    (entries, (texts.len() + numbers.len() + lists.len()) as u64)
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_measured_without_a_model() {
        let (file, weights) = model_file();
        assert!(weights > 100_000_000 && file.len() as u64 - weights < 20_000);
        let rate = weights_per_second(1, Duration::from_millis(50)).expect("a rate");
        assert!(rate.is_finite() && rate > 1e6, "{rate}");
    }
}
