//! Owns what a file of a known architecture must hold: its sizes and its tensors, checked against each other.
//! Must not know tokens as text. Invariant: a `Model` that exists can be run without any further size check.

mod architecture;
mod cache;
mod forward;
mod rotation;
mod weights;

pub(crate) use cache::Cache;
pub(crate) use forward::{BATCH, Pass, Stopped};

use crate::error::ModelError;
use crate::gguf::{Gguf, Source};
use architecture::Architecture;
use rotation::Rotation;
use weights::{Matrix, matrix, vector};

/// The sizes of a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub layers: usize,
    pub embedding: usize,
    pub feed_forward: usize,
    pub heads: usize,
    pub key_heads: usize,
    pub head_size: usize,
    pub vocabulary: usize,
    /// Tokens the model was trained to look back on.
    pub context: usize,
    pub epsilon: f32,
}

/// The weights of a model, lying in its mapped file.
pub(crate) struct Model {
    pub shape: Shape,
    source: Source,
    rotation: Rotation,
    embedding: Matrix,
    layers: Vec<Layer>,
    output_norm: Vec<f32>,
    output: Matrix,
}

struct Layer {
    attention_norm: Vec<f32>,
    query: Matrix,
    key: Matrix,
    value: Matrix,
    query_bias: Option<Vec<f32>>,
    key_bias: Option<Vec<f32>>,
    value_bias: Option<Vec<f32>>,
    /// Norms of each head of the queries and the keys, where the architecture has them.
    head_norms: Option<HeadNorms>,
    attention_output: Matrix,
    feed_forward_norm: Vec<f32>,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
}

struct HeadNorms {
    query: Vec<f32>,
    key: Vec<f32>,
}

/// No real model is larger in any direction; a damaged file is stopped here.
const SIZE_LIMIT: usize = 1 << 20;

impl Model {
    pub(crate) fn read(file: &Gguf) -> Result<Model, ModelError> {
        let architecture = Architecture::read(file)?;
        let shape = Shape::read(file, architecture.name())?;
        let rotation = Rotation::read(file, architecture, shape.head_size)?;
        refuse_strangers(file, shape.layers, architecture)?;
        let embedding = matrix(file, "token_embd.weight", shape.embedding, shape.vocabulary)?;
        let output = match file.tensor("output.weight") {
            Some(_) => matrix(file, "output.weight", shape.embedding, shape.vocabulary)?,
            None => embedding.clone(),
        };
        let layers = (0..shape.layers)
            .map(|index| Layer::read(file, index, &shape, architecture))
            .collect::<Result<_, _>>()?;
        Ok(Model {
            output_norm: vector(file, "output_norm.weight", shape.embedding)?,
            source: file.source().clone(),
            shape,
            rotation,
            embedding,
            layers,
            output,
        })
    }

    fn data(&self, matrix: &Matrix) -> &[u8] {
        &self.source.as_ref().as_ref()[matrix.data.clone()]
    }
}

impl Shape {
    /// `prefix` is the name of the architecture, with which the keys begin.
    fn read(file: &Gguf, prefix: &str) -> Result<Shape, ModelError> {
        let size = |key: &str| -> Result<usize, ModelError> {
            let value = file.unsigned(&format!("{prefix}.{key}"));
            let value =
                value.ok_or_else(|| ModelError::damaged(format!("it does not state {prefix}.{key}")))?;
            let value = usize::try_from(value).ok().filter(|value| (1..=SIZE_LIMIT).contains(value));
            value.ok_or_else(|| ModelError::damaged(format!("{prefix}.{key} is out of range")))
        };
        let or = |key: &str, default: usize| match file.value(&format!("{prefix}.{key}")) {
            Some(_) => size(key),
            None => Ok(default),
        };
        if file.unsigned(&format!("{prefix}.expert_count")).unwrap_or(0) > 0 {
            return Err(ModelError::unsupported("it is a mixture of experts"));
        }
        let (embedding, heads) = (size("embedding_length")?, size("attention.head_count")?);
        let head_size = or("attention.key_length", embedding / heads)?;
        let epsilon = file.real(&format!("{prefix}.attention.layer_norm_rms_epsilon"));
        let shape = Shape {
            layers: size("block_count")?,
            embedding,
            feed_forward: size("feed_forward_length")?,
            heads,
            key_heads: or("attention.head_count_kv", heads)?,
            head_size,
            vocabulary: file.tensor("token_embd.weight").map_or(0, |tensor| tensor.rows),
            context: size("context_length")?,
            epsilon: epsilon.filter(|epsilon| (0.0..0.1).contains(epsilon)).unwrap_or(1e-5) as f32,
        };
        if or("attention.value_length", head_size)? != head_size {
            return Err(ModelError::unsupported("its keys and values differ in size"));
        }
        shape.check()
    }

    fn check(self) -> Result<Shape, ModelError> {
        if !self.heads.is_multiple_of(self.key_heads) {
            return Err(ModelError::damaged("its attention heads do not divide"));
        }
        if !self.head_size.is_multiple_of(16) {
            return Err(ModelError::unsupported(format!("its attention heads are {} wide", self.head_size)));
        }
        if !self.embedding.is_multiple_of(32) || !self.feed_forward.is_multiple_of(32) {
            return Err(ModelError::unsupported("its layers are not a multiple of 32 wide"));
        }
        if !(16..=SIZE_LIMIT).contains(&self.vocabulary) || self.heads * self.head_size > SIZE_LIMIT {
            return Err(ModelError::damaged("its sizes are out of range"));
        }
        Ok(self)
    }
}

impl Layer {
    fn read(
        file: &Gguf,
        index: usize,
        shape: &Shape,
        architecture: Architecture,
    ) -> Result<Layer, ModelError> {
        let name = |part: &str| format!("blk.{index}.{part}");
        let (embedding, feed_forward) = (shape.embedding, shape.feed_forward);
        let (queries, keys) = (shape.heads * shape.head_size, shape.key_heads * shape.head_size);
        let bias = |part: &str, length: usize| match file.tensor(&name(part)) {
            Some(_) => vector(file, &name(part), length).map(Some),
            None => Ok(None),
        };
        let head_norms = match architecture.has_head_norms() {
            true => Some(HeadNorms {
                query: vector(file, &name("attn_q_norm.weight"), shape.head_size)?,
                key: vector(file, &name("attn_k_norm.weight"), shape.head_size)?,
            }),
            false => None,
        };
        Ok(Layer {
            attention_norm: vector(file, &name("attn_norm.weight"), embedding)?,
            query: matrix(file, &name("attn_q.weight"), embedding, queries)?,
            key: matrix(file, &name("attn_k.weight"), embedding, keys)?,
            value: matrix(file, &name("attn_v.weight"), embedding, keys)?,
            query_bias: bias("attn_q.bias", queries)?,
            key_bias: bias("attn_k.bias", keys)?,
            value_bias: bias("attn_v.bias", keys)?,
            head_norms,
            attention_output: matrix(file, &name("attn_output.weight"), queries, embedding)?,
            feed_forward_norm: vector(file, &name("ffn_norm.weight"), embedding)?,
            gate: matrix(file, &name("ffn_gate.weight"), embedding, feed_forward)?,
            up: matrix(file, &name("ffn_up.weight"), embedding, feed_forward)?,
            down: matrix(file, &name("ffn_down.weight"), feed_forward, embedding)?,
        })
    }
}

const KNOWN: [&str; 4] = ["token_embd.weight", "output_norm.weight", "output.weight", "rope_freqs.weight"];
const HEAD_NORMS: [&str; 2] = ["attn_q_norm.weight", "attn_k_norm.weight"];
const KNOWN_IN_LAYER: [&str; 12] = [
    "attn_norm.weight",
    "attn_q.weight",
    "attn_k.weight",
    "attn_v.weight",
    "attn_q.bias",
    "attn_k.bias",
    "attn_v.bias",
    "attn_output.weight",
    "ffn_norm.weight",
    "ffn_gate.weight",
    "ffn_up.weight",
    "ffn_down.weight",
];

/// A tensor the engine would leave out means a model it would run wrongly.
fn refuse_strangers(file: &Gguf, layers: usize, architecture: Architecture) -> Result<(), ModelError> {
    for name in file.tensor_names() {
        let in_layer = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
        let known = match in_layer {
            Some((index, part)) => {
                let norm = architecture.has_head_norms() && HEAD_NORMS.contains(&part);
                index.parse().is_ok_and(|index: usize| index < layers)
                    && (norm || KNOWN_IN_LAYER.contains(&part))
            }
            None => KNOWN.contains(&name),
        };
        if !known {
            return Err(ModelError::unsupported(format!("it has a tensor {name:?} that is not known")));
        }
    }
    Ok(())
}
