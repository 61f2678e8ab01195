//! Owns the keys and values of past tokens, in bytes with one scale for each head of each position, in pages
//! that are allocated as a chat grows. Must not know how they are used.
//! Invariant: a page is whole or absent; what lies beyond the tokens in use is finite, if stale.

use super::Shape;
use crate::kernels::attention::{PAGE, PageView, key_place, value_place};

/// The memory of one conversation.
pub(crate) struct Cache {
    key_heads: usize,
    head_size: usize,
    layers: usize,
    pages: Vec<Page>,
}

struct Page {
    bytes: Vec<i8>,
    scales: Vec<f32>,
}

impl Cache {
    pub(crate) fn new(shape: &Shape) -> Cache {
        Cache {
            key_heads: shape.key_heads,
            head_size: shape.head_size,
            layers: shape.layers,
            pages: Vec::new(),
        }
    }

    /// Makes room for `tokens` positions.
    pub(crate) fn reserve(&mut self, tokens: usize) {
        let vectors = self.layers * self.key_heads * 2 * PAGE;
        while self.pages.len() * PAGE < tokens {
            self.pages.push(Page { bytes: vec![0; vectors * self.head_size], scales: vec![0.0; vectors] });
        }
    }

    /// Gives back the pages beyond `tokens` positions.
    pub(crate) fn shrink(&mut self, tokens: usize) {
        self.pages.truncate(tokens.div_ceil(PAGE));
    }

    /// The largest number of positions, at most `tokens`, that are whole pages.
    pub(crate) fn whole_pages(&self, tokens: usize) -> usize {
        tokens / PAGE * PAGE
    }

    /// The pages of the first `tokens` positions, which are whole pages.
    pub(crate) fn to_bytes(&self, tokens: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for page in &self.pages[..tokens / PAGE] {
            bytes.extend(page.bytes.iter().map(|&value| value as u8));
            bytes.extend(page.scales.iter().flat_map(|scale| scale.to_le_bytes()));
        }
        bytes
    }

    /// Takes over the pages that `to_bytes` gave, in place of all others. `false`: they do not fit, and nothing changed.
    pub(crate) fn restore(&mut self, tokens: usize, bytes: &[u8]) -> bool {
        let vectors = self.layers * self.key_heads * 2 * PAGE;
        let (values, scales) = (vectors * self.head_size, vectors * 4);
        let pages = tokens / PAGE;
        if bytes.len() != pages * (values + scales) {
            return false;
        }
        let mut restored = Vec::with_capacity(pages);
        for page in bytes.chunks_exact(values + scales) {
            let (values, scales) = page.split_at(values);
            let scales: Vec<f32> = scales
                .chunks_exact(4)
                .map(|scale| f32::from_le_bytes([scale[0], scale[1], scale[2], scale[3]]))
                .collect();
            if !scales.iter().all(|scale| scale.is_finite()) {
                return false;
            }
            restored.push(Page { bytes: values.iter().map(|&value| value as i8).collect(), scales });
        }
        self.pages = restored;
        true
    }

    /// Bytes held.
    pub(crate) fn size(&self) -> usize {
        self.pages.iter().map(|page| page.bytes.len() + page.scales.len() * 4).sum()
    }

    /// Stores what one layer computed for one position: its key heads side by side.
    pub(crate) fn store(&mut self, layer: usize, position: usize, keys: &[f32], values: &[f32]) {
        let size = self.head_size;
        let place = position % PAGE;
        let page = &mut self.pages[position / PAGE];
        for head in 0..self.key_heads {
            let vector = (layer * self.key_heads + head) * 2;
            let (from, to) = (&keys[head * size..][..size], &mut page.bytes[vector * PAGE * size..]);
            let (scale, inverse) = scale(from);
            page.scales[vector * PAGE + place] = scale;
            for (dimension, &value) in from.iter().enumerate() {
                to[key_place(place, dimension, size)] = round(value * inverse);
            }
            let vector = vector + 1;
            let (from, to) = (&values[head * size..][..size], &mut page.bytes[vector * PAGE * size..]);
            let (scale, inverse) = self::scale(from);
            page.scales[vector * PAGE + place] = scale;
            for (dimension, &value) in from.iter().enumerate() {
                to[value_place(place, dimension, size)] = round(value * inverse);
            }
        }
    }

    /// The stored values of one key head of a layer, page by page.
    pub(crate) fn views(
        &self,
        layer: usize,
        head: usize,
        tokens: usize,
    ) -> impl Iterator<Item = PageView<'_>> {
        let vector = (layer * self.key_heads + head) * 2;
        let length = PAGE * self.head_size;
        self.pages.iter().take(tokens.div_ceil(PAGE)).map(move |page| PageView {
            keys: &page.bytes[vector * length..][..length],
            key_scales: &page.scales[vector * PAGE..][..PAGE],
            values: &page.bytes[(vector + 1) * length..][..length],
            value_scales: &page.scales[(vector + 1) * PAGE..][..PAGE],
        })
    }
}

/// The scale that maps a vector onto bytes, and its inverse; a broken vector counts as nothing.
fn scale(vector: &[f32]) -> (f32, f32) {
    let largest = vector.iter().fold(0f32, |largest, value| largest.max(value.abs()));
    if largest > 0.0 && largest.is_finite() { (largest / 127.0, 127.0 / largest) } else { (0.0, 0.0) }
}

/// The nearest integer of a number within ±127, without asking a library for it: added to a number this large, the
/// fraction falls off and the integer is what the low bits hold.
fn round(value: f32) -> i8 {
    (value + 12_582_912.0).to_bits() as i8
}
