//! Owns one pass of some tokens through the model. Knows layers, cache and kernels; must not know text.
//! Invariant: the cache counts as extended only when a pass has finished; a stopped pass leaves it as it was.

use std::sync::atomic::{AtomicBool, Ordering};

use super::rotation::Angles;
use super::weights::Matrix;
use super::{Cache, HeadNorms, Layer, Model};
use crate::kernels::Kernels;
use crate::kernels::activations::Activations;
use crate::kernels::attention::{Attention, PageView};
use crate::kernels::multiply::Product;
use crate::threads::{ThreadPool, WorkBuffers};

/// Most tokens in one pass.
pub(crate) const BATCH: usize = 96;
/// Tokens whose attention is computed together.
const ATTENTION_BLOCK: usize = 8;

/// The caller asked to stop in the middle of a pass.
#[derive(Debug)]
pub(crate) struct Stopped;

/// The buffers of a pass and the threads that compute it.
pub(crate) struct Pass {
    kernels: &'static Kernels,
    pool: ThreadPool,
    angles: Angles,
    activations: Activations,
    /// One row for each token of the pass in all of these.
    state: Vec<f32>,
    normal: Vec<f32>,
    queries: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
    mixed: Vec<f32>,
    gates: Vec<f32>,
    ups: Vec<f32>,
    added: Vec<f32>,
    /// One row for each wanted token.
    logits: Vec<f32>,
    vocabulary: usize,
    /// One head while it is normalized.
    head: Vec<f32>,
}

impl Pass {
    pub(crate) fn new(kernels: &'static Kernels, threads: usize) -> Pass {
        Pass {
            kernels,
            pool: ThreadPool::new(threads),
            angles: Angles::default(),
            activations: Activations::default(),
            state: Vec::new(),
            normal: Vec::new(),
            queries: Vec::new(),
            keys: Vec::new(),
            values: Vec::new(),
            mixed: Vec::new(),
            gates: Vec::new(),
            ups: Vec::new(),
            added: Vec::new(),
            logits: Vec::new(),
            vocabulary: 0,
            head: Vec::new(),
        }
    }

    pub(crate) fn kernels(&self) -> &'static str {
        self.kernels.name
    }

    /// Runs `tokens` (at most `BATCH`) at positions from `first` on, whose past is in the cache. The logits after the last
    /// `wanted` of them are kept.
    pub(crate) fn run(
        &mut self,
        model: &Model,
        cache: &mut Cache,
        first: usize,
        tokens: &[u32],
        wanted: usize,
        stop: &AtomicBool,
    ) -> Result<(), Stopped> {
        let count = tokens.len();
        self.resize(model, count);
        cache.reserve(first + count);
        model.rotation.angles(first, count, &mut self.angles);
        model.embed(tokens, &mut self.state);
        for (index, layer) in model.layers.iter().enumerate() {
            if stop.load(Ordering::Relaxed) {
                return Err(Stopped);
            }
            self.attention(model, layer, cache, index, first, count);
            let next = model.layers.get(index + 1).map_or(&model.output, |layer| &layer.query);
            self.feed_forward(model, layer, count, next);
        }
        if wanted > 0 {
            self.output(model, count, wanted);
        }
        self.pool.review();
        Ok(())
    }

    /// The logits after one of the wanted tokens of the last pass.
    pub(crate) fn logits(&self, row: usize) -> &[f32] {
        &self.logits[row * self.vocabulary..][..self.vocabulary]
    }

    fn resize(&mut self, model: &Model, count: usize) {
        let shape = &model.shape;
        let (queries, keys) = (shape.heads * shape.head_size, shape.key_heads * shape.head_size);
        self.state.resize(count * shape.embedding, 0.0);
        self.normal.resize(count * shape.embedding, 0.0);
        self.added.resize(count * shape.embedding, 0.0);
        self.queries.resize(count * queries, 0.0);
        self.mixed.resize(count * queries, 0.0);
        self.keys.resize(count * keys, 0.0);
        self.values.resize(count * keys, 0.0);
        self.gates.resize(count * shape.feed_forward, 0.0);
        self.ups.resize(count * shape.feed_forward, 0.0);
    }

    fn attention(
        &mut self,
        model: &Model,
        layer: &Layer,
        cache: &mut Cache,
        index: usize,
        first: usize,
        count: usize,
    ) {
        let shape = &model.shape;
        self.normalize(model, &layer.attention_norm);
        let into = [
            (&layer.query, &mut self.queries),
            (&layer.key, &mut self.keys),
            (&layer.value, &mut self.values),
        ];
        let next = &layer.attention_output;
        multiply(self.kernels, &mut self.pool, model, &self.normal, &mut self.activations, into, next);
        add_bias(&mut self.queries, &layer.query_bias);
        add_bias(&mut self.keys, &layer.key_bias);
        add_bias(&mut self.values, &layer.value_bias);
        if let Some(norms) = &layer.head_norms {
            self.normalize_heads(model, norms);
        }
        let (queries, keys) = (shape.heads * shape.head_size, shape.key_heads * shape.head_size);
        for token in 0..count {
            let key = &mut self.keys[token * keys..][..keys];
            self.angles.turn(token, &mut self.queries[token * queries..][..queries], shape.head_size);
            self.angles.turn(token, key, shape.head_size);
            cache.store(index, first + token, key, &self.values[token * keys..][..keys]);
        }
        self.attend(model, cache, index, first, count);
        let into = [(&layer.attention_output, &mut self.added)];
        let next = &layer.gate;
        multiply(self.kernels, &mut self.pool, model, &self.mixed, &mut self.activations, into, next);
        self.kernels.accumulate(&mut self.state, &self.added);
    }

    fn attend(&mut self, model: &Model, cache: &Cache, index: usize, first: usize, count: usize) {
        let shape = &model.shape;
        let heads = shape.key_heads;
        let views: Vec<Vec<PageView>> =
            (0..heads).map(|head| cache.views(index, head, first + count).collect()).collect();
        let group = shape.heads / heads;
        let whole = Attention {
            pages: &[],
            first,
            head_size: shape.head_size,
            group,
            offset: 0,
            queries: &self.queries,
            out: self.mixed.as_mut_ptr(),
            stride: shape.heads * shape.head_size,
        };
        let blocks = count.div_ceil(ATTENTION_BLOCK);
        let kernels = self.kernels;
        let whole = &whole;
        let views = &views;
        self.pool.run(heads * blocks, &move |pieces, buffers: &mut WorkBuffers| {
            for piece in pieces {
                let (head, block) = (piece / blocks, piece % blocks);
                let offset = head * group * whole.head_size;
                let job = Attention { pages: &views[head], offset, ..*whole };
                let start = block * ATTENTION_BLOCK;
                kernels.attend(&job, start..count.min(start + ATTENTION_BLOCK), &mut buffers.attention);
            }
        });
    }

    fn feed_forward(&mut self, model: &Model, layer: &Layer, count: usize, next: &Matrix) {
        let kernels = self.kernels;
        self.normalize(model, &layer.feed_forward_norm);
        let into = [(&layer.gate, &mut self.gates), (&layer.up, &mut self.ups)];
        multiply(kernels, &mut self.pool, model, &self.normal, &mut self.activations, into, &layer.down);
        let width = model.shape.feed_forward;
        kernels.gate(&mut self.gates[..count * width], &self.ups[..count * width]);
        let into = [(&layer.down, &mut self.added)];
        multiply(kernels, &mut self.pool, model, &self.gates, &mut self.activations, into, next);
        kernels.accumulate(&mut self.state, &self.added);
    }

    fn output(&mut self, model: &Model, count: usize, wanted: usize) {
        let width = model.shape.embedding;
        let last = &self.state[(count - wanted) * width..];
        let normal = &mut self.normal[..wanted * width];
        for (state, normal) in last.chunks_exact(width).zip(normal.chunks_exact_mut(width)) {
            self.kernels.normalize(state, &model.output_norm, model.shape.epsilon, normal);
        }
        self.vocabulary = model.shape.vocabulary;
        // It never shrinks: growing fills it.
        let length = self.logits.len().max(wanted * self.vocabulary);
        self.logits.resize(length, 0.0);
        let into = [(&model.output, &mut self.logits)];
        // The next token begins with the first layer.
        let next = model.layers.first().map_or(&model.output, |layer| &layer.query);
        multiply(self.kernels, &mut self.pool, model, normal, &mut self.activations, into, next);
    }

    fn normalize_heads(&mut self, model: &Model, norms: &HeadNorms) {
        let (size, epsilon) = (model.shape.head_size, model.shape.epsilon);
        self.head.resize(size, 0.0);
        for (rows, weight) in [(&mut self.queries, &norms.query), (&mut self.keys, &norms.key)] {
            for head in rows.chunks_exact_mut(size) {
                self.kernels.normalize(head, weight, epsilon, &mut self.head);
                head.copy_from_slice(&self.head);
            }
        }
    }

    fn normalize(&mut self, model: &Model, weight: &[f32]) {
        let width = model.shape.embedding;
        for (x, out) in self.state.chunks_exact(width).zip(self.normal.chunks_exact_mut(width)) {
            self.kernels.normalize(x, weight, model.shape.epsilon, out);
        }
    }
}

impl Model {
    /// The embedding of each token, one row after the other. A token outside the vocabulary has none.
    fn embed(&self, tokens: &[u32], state: &mut [f32]) {
        let width = self.shape.embedding;
        let row = self.embedding.format.row_bytes(width);
        let data = self.data(&self.embedding);
        for (&token, out) in tokens.iter().zip(state.chunks_exact_mut(width)) {
            match data.chunks_exact(row).nth(token as usize) {
                Some(row) => self.embedding.format.expand(row, out),
                None => out.fill(0.0),
            }
        }
    }
}

/// Multiplies the same rows with several matrices, as one piece of shared work. `next` is the matrix after them.
fn multiply<const N: usize>(
    kernels: &'static Kernels,
    pool: &mut ThreadPool,
    model: &Model,
    rows: &[f32],
    activations: &mut Activations,
    into: [(&Matrix, &mut Vec<f32>); N],
    next: &Matrix,
) {
    let columns = into[0].0.columns;
    activations.resize(rows.len() / columns, columns);
    kernels.quantize(rows, activations);
    let activations = &*activations;
    let mut following = into.each_ref().map(|_| model.data(next));
    for (following, (matrix, _)) in following.iter_mut().zip(&into[1..]) {
        *following = model.data(matrix);
    }
    let mut following = following.into_iter();
    let products = into.map(|(matrix, out)| {
        assert!(out.len() >= activations.tokens * matrix.rows);
        Product {
            format: matrix.format,
            rows: matrix.rows,
            columns: matrix.columns,
            weights: model.data(matrix),
            next: following.next().unwrap_or_default(),
            activations,
            plain: rows,
            out: out.as_mut_ptr(),
            out_stride: matrix.rows,
        }
    });
    let panels = products.each_ref().map(|product| product.rows.div_ceil(kernels.lanes));
    let products = &products;
    pool.run(panels.iter().sum(), &move |pieces, buffers: &mut WorkBuffers| {
        let mut before = 0;
        for (product, panels) in products.iter().zip(panels) {
            let start = pieces.start.clamp(before, before + panels) - before;
            let end = pieces.end.clamp(before, before + panels) - before;
            kernels.multiply(product, start..end, &mut buffers.panel);
            before += panels;
        }
    });
}

fn add_bias(rows: &mut [f32], bias: &Option<Vec<f32>>) {
    let Some(bias) = bias else { return };
    for row in rows.chunks_exact_mut(bias.len()) {
        for (value, bias) in row.iter_mut().zip(bias) {
            *value += bias;
        }
    }
}
