//! Owns attention of some tokens over the cached keys and values of one key head. Knows the layout of a cache
//! page; must not know layers. Invariant: a token sees the keys up to its own position and no other.

use std::ops::Range;

use super::elementwise::exponential;
use super::lanes::Lanes;

/// Positions in one page of the cache.
pub(crate) const PAGE: usize = 128;
/// Keys that lie side by side, so that one vector load meets sixteen of them.
pub(crate) const KEY_BLOCK: usize = 16;

/// The part of a page that belongs to one layer and one key head.
#[derive(Clone, Copy)]
pub(crate) struct PageView<'a> {
    /// Blocks of sixteen keys: dimension by dimension, the keys side by side.
    pub keys: &'a [i8],
    pub key_scales: &'a [f32],
    /// Position by position, the dimensions side by side.
    pub values: &'a [i8],
    pub value_scales: &'a [f32],
}

/// The input of one call: the query heads that share a key head, for some tokens.
#[derive(Clone, Copy)]
pub(crate) struct Attention<'a> {
    pub pages: &'a [PageView<'a>],
    /// Position of token 0.
    pub first: usize,
    pub head_size: usize,
    /// Query heads that share this key head, and where the first of them begins in a token's row.
    pub group: usize,
    pub offset: usize,
    pub queries: &'a [f32],
    pub out: *mut f32,
    /// Floats from one token to the next, in `queries` and in `out`.
    pub stride: usize,
}

// SAFETY: `out` is only written through, each token's heads by the one thread that computes them.
unsafe impl Sync for Attention<'_> {}

/// Buffers of one thread, reused from call to call.
#[derive(Default)]
pub(crate) struct Scratch {
    queries: Vec<f32>,
    scores: Vec<f32>,
    sums: Vec<f32>,
}

/// Computes `tokens`, writing their heads into `out`.
///
/// # Safety
/// The pages cover the position of the last token; slices have the sizes the fields say.
#[inline(always)]
pub(crate) unsafe fn attend<S: Lanes, const WIDE: bool>(
    job: &Attention,
    tokens: Range<usize>,
    scratch: &mut Scratch,
) {
    let rows = tokens.len() * job.group;
    let seen = job.first + tokens.end;
    let padded = seen.next_multiple_of(PAGE);
    scratch.queries.resize(rows * job.head_size, 0.0);
    scratch.scores.resize(rows * padded, 0.0);
    scratch.sums.clear();
    scratch.sums.resize(rows * job.head_size, 0.0);
    pack_queries(job, &tokens, &mut scratch.queries);
    // SAFETY: the buffers were sized above, the pages reach `seen`.
    unsafe {
        score::<S, WIDE>(job, rows, seen, scratch);
        for row in 0..rows {
            let limit = job.first + tokens.start + row / job.group + 1;
            let scores = &mut scratch.scores[row * padded..(row + 1) * padded];
            soften::<S>(scores, limit, seen, job.pages);
        }
        weigh::<S, WIDE>(job, rows, seen, scratch);
        for row in 0..rows {
            let token = tokens.start + row / job.group;
            let place = token * job.stride + job.offset + row % job.group * job.head_size;
            let from = scratch.sums.as_ptr().add(row * job.head_size);
            std::ptr::copy_nonoverlapping(from, job.out.add(place), job.head_size);
        }
    }
}

/// Dimension by dimension, the rows side by side, already divided by the square root of the head size.
fn pack_queries(job: &Attention, tokens: &Range<usize>, to: &mut [f32]) {
    let rows = tokens.len() * job.group;
    let factor = 1.0 / (job.head_size as f32).sqrt();
    for row in 0..rows {
        let place = (tokens.start + row / job.group) * job.stride + job.offset;
        let from = &job.queries[place + row % job.group * job.head_size..][..job.head_size];
        for (dimension, &value) in from.iter().enumerate() {
            to[dimension * rows + row] = value * factor;
        }
    }
}

#[inline(always)]
unsafe fn score<S: Lanes, const WIDE: bool>(
    job: &Attention,
    rows: usize,
    seen: usize,
    scratch: &mut Scratch,
) {
    let padded = seen.next_multiple_of(PAGE);
    for (index, page) in job.pages.iter().enumerate().take(padded / PAGE) {
        let keys = (seen - index * PAGE).min(PAGE);
        let mut row = 0;
        while row < rows {
            let tile = Scores {
                queries: scratch.queries[row..].as_ptr(),
                rows,
                page,
                scores: scratch.scores[row * padded + index * PAGE..].as_mut_ptr(),
                stride: padded,
                head_size: job.head_size,
            };
            // SAFETY: a tile stays inside its page and, by `row < rows`, inside the score buffer.
            row += unsafe {
                match rows - row {
                    12.. if WIDE => tile.run::<S, 12, 1>(keys),
                    6.. if WIDE => tile.run::<S, 6, 2>(keys),
                    6.. => tile.run::<S, 6, 1>(keys),
                    3.. => tile.run::<S, 3, 2>(keys),
                    _ => tile.run::<S, 1, 4>(keys),
                }
            };
        }
    }
}

/// Some rows of queries against one page of keys.
struct Scores<'a> {
    queries: *const f32,
    rows: usize,
    page: &'a PageView<'a>,
    scores: *mut f32,
    stride: usize,
    head_size: usize,
}

impl Scores<'_> {
    /// `R` rows, `B` vectors of keys at a time; says how many rows were done.
    #[inline(always)]
    unsafe fn run<S: Lanes, const R: usize, const B: usize>(&self, keys: usize) -> usize {
        let mut key = 0;
        while key < keys {
            // SAFETY: `B * COUNT` divides a page, so the last step ends inside it.
            unsafe {
                let mut totals = [[S::splat(0.0); B]; R];
                let mut from = [self.page.keys.as_ptr(); B];
                for (step, from) in from.iter_mut().enumerate() {
                    let place = key + step * S::COUNT;
                    let block = place / KEY_BLOCK * KEY_BLOCK * self.head_size;
                    *from = from.add(block + place % KEY_BLOCK);
                }
                for dimension in 0..self.head_size {
                    let mut vectors = [S::splat(0.0); B];
                    for step in 0..B {
                        vectors[step] = S::load_bytes(from[step].add(dimension * KEY_BLOCK));
                    }
                    for row in 0..R {
                        let query = S::splat(*self.queries.add(dimension * self.rows + row));
                        for step in 0..B {
                            totals[row][step] = S::fused(query, vectors[step], totals[row][step]);
                        }
                    }
                }
                for step in 0..B {
                    let place = key + step * S::COUNT;
                    let scale = S::load(self.page.key_scales.as_ptr().add(place));
                    for row in 0..R {
                        let out = self.scores.add(row * self.stride + place);
                        S::store(out, S::multiply(totals[row][step], scale));
                    }
                }
            }
            key += B * S::COUNT;
        }
        R
    }
}

/// Turns one row of scores into weights that sum to one, already times the scale of each value.
#[inline(always)]
unsafe fn soften<S: Lanes>(scores: &mut [f32], limit: usize, seen: usize, pages: &[PageView]) {
    let end = seen.next_multiple_of(KEY_BLOCK);
    scores[limit..end].fill(f32::NEG_INFINITY);
    // SAFETY: `end` is a multiple of every lane count and inside the row, whose length is whole pages.
    unsafe {
        let mut largest = S::load(scores.as_ptr());
        let mut index = S::COUNT;
        while index < end {
            largest = S::larger(largest, S::load(scores.as_ptr().add(index)));
            index += S::COUNT;
        }
        let minus = S::splat(-S::largest(largest));
        let mut total = S::splat(0.0);
        let mut index = 0;
        while index < end {
            let place = scores.as_mut_ptr().add(index);
            let value = exponential::<S>(S::add(S::load(place), minus));
            total = S::add(total, value);
            S::store(place, value);
            index += S::COUNT;
        }
        let factor = S::splat(1.0 / S::sum(total));
        let mut index = 0;
        while index < end {
            let place = scores.as_mut_ptr().add(index);
            let scale = S::load(pages[index / PAGE].value_scales.as_ptr().add(index % PAGE));
            S::store(place, S::multiply(S::load(place), S::multiply(scale, factor)));
            index += S::COUNT;
        }
    }
}

#[inline(always)]
unsafe fn weigh<S: Lanes, const WIDE: bool>(
    job: &Attention,
    rows: usize,
    seen: usize,
    scratch: &mut Scratch,
) {
    let padded = seen.next_multiple_of(PAGE);
    for (index, page) in job.pages.iter().enumerate().take(padded / PAGE) {
        let keys = (seen - index * PAGE).min(PAGE);
        let mut row = 0;
        while row < rows {
            let tile = Values {
                weights: scratch.scores[row * padded + index * PAGE..].as_ptr(),
                stride: padded,
                page,
                sums: scratch.sums[row * job.head_size..].as_mut_ptr(),
                head_size: job.head_size,
            };
            // SAFETY: a tile stays inside its page and, by `row < rows`, inside the buffers.
            row += unsafe {
                match rows - row {
                    6.. if WIDE => tile.run::<S, 6>(keys),
                    3.. => tile.run::<S, 3>(keys),
                    _ => tile.run::<S, 1>(keys),
                }
            };
        }
    }
}

/// Some rows of weights against one page of values.
struct Values<'a> {
    weights: *const f32,
    stride: usize,
    page: &'a PageView<'a>,
    sums: *mut f32,
    head_size: usize,
}

impl Values<'_> {
    /// `R` rows, all dimensions; says how many rows were done.
    #[inline(always)]
    unsafe fn run<S: Lanes, const R: usize>(&self, keys: usize) -> usize {
        let mut dimension = 0;
        while dimension < self.head_size {
            // SAFETY: `columns` never passes the head size, which is a multiple of 16.
            dimension += unsafe {
                match (self.head_size - dimension) / S::COUNT {
                    4.. => self.columns::<S, R, 4>(keys, dimension),
                    _ => self.columns::<S, R, 1>(keys, dimension),
                }
            };
        }
        R
    }

    #[inline(always)]
    unsafe fn columns<S: Lanes, const R: usize, const C: usize>(
        &self,
        keys: usize,
        dimension: usize,
    ) -> usize {
        // SAFETY: as for `run`.
        unsafe {
            let mut totals = [[S::splat(0.0); C]; R];
            for key in 0..keys {
                let from = self.page.values.as_ptr().add(key * self.head_size + dimension);
                let mut vectors = [S::splat(0.0); C];
                for (column, vector) in vectors.iter_mut().enumerate() {
                    *vector = S::load_bytes(from.add(column * S::COUNT));
                }
                for row in 0..R {
                    let weight = S::splat(*self.weights.add(row * self.stride + key));
                    for column in 0..C {
                        totals[row][column] = S::fused(weight, vectors[column], totals[row][column]);
                    }
                }
            }
            for row in 0..R {
                for column in 0..C {
                    let place = self.sums.add(row * self.head_size + dimension + column * S::COUNT);
                    S::store(place, S::add(S::load(place), totals[row][column]));
                }
            }
        }
        C * S::COUNT
    }
}
