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
    /// Laid out by `key_place`.
    pub keys: &'a [i8],
    pub key_scales: &'a [f32],
    /// Laid out by `value_place`.
    pub values: &'a [i8],
    pub value_scales: &'a [f32],
}

/// Where a page holds a dimension of a key: in blocks of sixteen keys, four dimensions together, the keys side by side.
#[inline(always)]
pub(crate) fn key_place(position: usize, dimension: usize, head_size: usize) -> usize {
    let word = position / KEY_BLOCK * (head_size / 4) + dimension / 4;
    (word * KEY_BLOCK + position % KEY_BLOCK) * 4 + dimension % 4
}

/// Where a page holds a dimension of a value: four positions together, the dimensions side by side.
#[inline(always)]
pub(crate) fn value_place(position: usize, dimension: usize, head_size: usize) -> usize {
    (position / 4 * head_size + dimension) * 4 + position % 4
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
    /// Word by word the rows side by side, each in two parts.
    queries: Vec<[u32; 2]>,
    query_sizes: Vec<Size>,
    scores: Vec<f32>,
    /// Row by row, each page in two parts.
    weights: Vec<[[u32; PAGE / 4]; 2]>,
    weight_sizes: Vec<Size>,
    sums: Vec<f32>,
    /// Both parts of one query.
    parts: Vec<i8>,
}

/// Number ≈ scale * (`RADIX` * first part + second part), both of them bytes.
#[derive(Clone, Copy, Default)]
struct Size {
    scale: f32,
    /// The sums of both parts begin here, because other bytes may be stored plus 128 (see `Lanes::SIGNED_BYTES`).
    start: [u32; 2],
}

/// What the first part counts in, so that the second one never passes 127.
const RADIX: f32 = 254.0;
/// The largest number that two parts hold.
const LARGEST: f32 = 127.0 * RADIX;

/// Cuts `count` numbers, a multiple of sixteen, into two parts, a byte each.
#[inline(always)]
unsafe fn split<S: Lanes>(from: *const f32, count: usize, high: *mut i8, low: *mut i8) -> Size {
    // SAFETY: the caller vouches for `count` numbers and as many bytes in both parts.
    unsafe {
        let mut largest = S::splat(0.0);
        let mut index = 0;
        while index < count {
            largest = S::larger(largest, S::absolute(S::load(from.add(index))));
            index += S::COUNT;
        }
        let largest = S::largest(largest);
        let inverse = S::splat(if largest > 0.0 { LARGEST / largest } else { 0.0 });
        let mut sums = [S::splat_word(0); 2];
        let mut index = 0;
        while index < count {
            let number = S::multiply(S::load(from.add(index)), inverse);
            let first = S::round(S::multiply(number, S::splat(1.0 / RADIX)));
            let second = S::round(S::fused(S::to_float(first), S::splat(-RADIX), number));
            S::store_bytes(high.add(index), first);
            S::store_bytes(low.add(index), second);
            sums = [S::add_words(sums[0], first), S::add_words(sums[1], second)];
            index += S::COUNT;
        }
        let shift = if S::SIGNED_BYTES { 0 } else { -128 };
        let start = |sum: S::Int| S::sum_words(sum).wrapping_mul(shift) as u32;
        Size { scale: largest / LARGEST, start: [start(sums[0]), start(sums[1])] }
    }
}

/// Bytes of keys or values, as `Lanes::dot` wants them.
#[inline(always)]
unsafe fn load_signed<S: Lanes>(from: *const i8) -> S::Int {
    let flip = if S::SIGNED_BYTES { 0 } else { 0x8080_8080 };
    // SAFETY: the caller vouches for the words of all lanes.
    unsafe { S::xor(S::load_words(from.cast()), S::splat_word(flip)) }
}

/// The number whose two parts these are.
#[inline(always)]
unsafe fn join<S: Lanes>(sums: [S::Int; 2]) -> S::Float {
    // SAFETY: only registers; the caller vouches for the instructions.
    unsafe { S::fused(S::to_float(sums[0]), S::splat(RADIX), S::to_float(sums[1])) }
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
    let pages = padded / PAGE;
    scratch.queries.resize(rows * job.head_size / 4, [0; 2]);
    scratch.query_sizes.resize(rows, Size::default());
    scratch.scores.resize(rows * padded, 0.0);
    scratch.weights.resize(rows * pages, [[0; PAGE / 4]; 2]);
    scratch.weight_sizes.resize(rows * pages, Size::default());
    scratch.sums.clear();
    scratch.sums.resize(rows * job.head_size, 0.0);
    // SAFETY: the buffers were sized above, the pages reach `seen`.
    unsafe {
        pack_queries::<S>(job, &tokens, scratch);
        score::<S, WIDE>(job, rows, seen, scratch);
        for row in 0..rows {
            let limit = job.first + tokens.start + row / job.group + 1;
            let scores = &mut scratch.scores[row * padded..(row + 1) * padded];
            soften::<S>(scores, limit, seen, job.pages);
            for page in 0..pages {
                let count = (seen - page * PAGE).min(PAGE).next_multiple_of(KEY_BLOCK);
                let [high, low] = &mut scratch.weights[row * pages + page];
                let (high, low) = (high.as_mut_ptr().cast(), low.as_mut_ptr().cast());
                scratch.weight_sizes[row * pages + page] =
                    split::<S>(scores.as_ptr().add(page * PAGE), count, high, low);
            }
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

/// Word by word, the rows side by side, already divided by the square root of the head size.
#[inline(always)]
unsafe fn pack_queries<S: Lanes>(job: &Attention, tokens: &Range<usize>, scratch: &mut Scratch) {
    let rows = tokens.len() * job.group;
    let factor = 1.0 / (job.head_size as f32).sqrt();
    for row in 0..rows {
        let place = (tokens.start + row / job.group) * job.stride + job.offset;
        let query = &job.queries[place + row % job.group * job.head_size..][..job.head_size];
        scratch.parts.resize(2 * job.head_size, 0);
        let (high, low) = scratch.parts.split_at_mut(job.head_size);
        // SAFETY: both parts have room for the head, whose size is a multiple of sixteen.
        let mut size =
            unsafe { split::<S>(query.as_ptr(), job.head_size, high.as_mut_ptr(), low.as_mut_ptr()) };
        size.scale *= factor;
        scratch.query_sizes[row] = size;
        let words = high.chunks_exact(4).zip(low.chunks_exact(4));
        for (word, (high, low)) in words.enumerate() {
            // SAFETY: each chunk has four bytes.
            let join = |bytes: &[i8]| unsafe { bytes.as_ptr().cast::<u32>().read_unaligned() };
            scratch.queries[word * rows + row] = [join(high), join(low)];
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
                sizes: scratch.query_sizes[row..].as_ptr(),
                rows,
                page,
                scores: scratch.scores[row * padded + index * PAGE..].as_mut_ptr(),
                stride: padded,
                words: job.head_size / 4,
            };
            // SAFETY: a tile stays inside its page and, by `row < rows`, inside the score buffer.
            row += unsafe {
                match rows - row {
                    6.. if WIDE => tile.run::<S, 6, 2>(keys),
                    3.. if WIDE => tile.run::<S, 3, 4>(keys),
                    3.. => tile.run::<S, 3, 1>(keys),
                    _ => tile.run::<S, 1, 4>(keys),
                }
            };
        }
    }
}

/// Some rows of queries against one page of keys.
struct Scores<'a> {
    queries: *const [u32; 2],
    sizes: *const Size,
    rows: usize,
    page: &'a PageView<'a>,
    scores: *mut f32,
    stride: usize,
    words: usize,
}

impl Scores<'_> {
    /// `R` rows, `B` vectors of keys at a time; says how many rows were done.
    #[inline(always)]
    unsafe fn run<S: Lanes, const R: usize, const B: usize>(&self, keys: usize) -> usize {
        let mut key = 0;
        while key < keys {
            // SAFETY: `B * COUNT` divides a page, so the last step ends inside it.
            unsafe {
                let mut totals = [[[S::splat_word(0); 2]; B]; R];
                for row in 0..R {
                    let [high, low] = (*self.sizes.add(row)).start;
                    totals[row] = [[S::splat_word(high), S::splat_word(low)]; B];
                }
                let mut from = [self.page.keys.as_ptr(); B];
                for (step, from) in from.iter_mut().enumerate() {
                    *from = from.add(key_place(key + step * S::COUNT, 0, self.words * 4));
                }
                for word in 0..self.words {
                    let mut vectors = [S::splat_word(0); B];
                    for step in 0..B {
                        vectors[step] = load_signed::<S>(from[step].add(word * KEY_BLOCK * 4));
                    }
                    for row in 0..R {
                        let query: *const u32 = self.queries.add(word * self.rows + row).cast();
                        for step in 0..B {
                            let [high, low] = totals[row][step];
                            totals[row][step] = [
                                S::dot::<true>(high, vectors[step], query),
                                S::dot::<true>(low, vectors[step], query.add(1)),
                            ];
                        }
                    }
                }
                for step in 0..B {
                    let place = key + step * S::COUNT;
                    let scale = S::load(self.page.key_scales.as_ptr().add(place));
                    for row in 0..R {
                        let out = self.scores.add(row * self.stride + place);
                        let scale = S::multiply(scale, S::splat((*self.sizes.add(row)).scale));
                        S::store(out, S::multiply(join::<S>(totals[row][step]), scale));
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
    let pages = seen.div_ceil(PAGE);
    for (index, page) in job.pages.iter().enumerate().take(pages) {
        let keys = (seen - index * PAGE).min(PAGE);
        let mut row = 0;
        while row < rows {
            let tile = Values {
                weights: scratch.weights[row * pages + index..].as_ptr(),
                sizes: scratch.weight_sizes[row * pages + index..].as_ptr(),
                pages,
                page,
                sums: scratch.sums[row * job.head_size..].as_mut_ptr(),
                head_size: job.head_size,
            };
            // SAFETY: a tile stays inside its page and, by `row < rows`, inside the buffers.
            row += unsafe {
                match rows - row {
                    3.. if WIDE => tile.run::<S, 3, 4>(keys),
                    3.. => tile.run::<S, 3, 2>(keys),
                    _ => tile.run::<S, 1, 4>(keys),
                }
            };
        }
    }
}

/// Some rows of weights against one page of values.
struct Values<'a> {
    weights: *const [[u32; PAGE / 4]; 2],
    sizes: *const Size,
    /// Pages of a row.
    pages: usize,
    page: &'a PageView<'a>,
    sums: *mut f32,
    head_size: usize,
}

impl Values<'_> {
    /// `R` rows, all dimensions, `C` vectors at a time where there are as many; says how many rows were done.
    #[inline(always)]
    unsafe fn run<S: Lanes, const R: usize, const C: usize>(&self, keys: usize) -> usize {
        let mut dimension = 0;
        while dimension < self.head_size {
            // SAFETY: `columns` never passes the head size, which is a multiple of 16.
            dimension += unsafe {
                if (self.head_size - dimension) / S::COUNT >= C {
                    self.columns::<S, R, C>(keys, dimension)
                } else {
                    self.columns::<S, R, 1>(keys, dimension)
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
        // SAFETY: as for `run`; a page holds whole words of four positions.
        unsafe {
            let mut totals = [[[S::splat_word(0); 2]; C]; R];
            for row in 0..R {
                let [high, low] = (*self.sizes.add(row * self.pages)).start;
                totals[row] = [[S::splat_word(high), S::splat_word(low)]; C];
            }
            for word in 0..keys.div_ceil(4) {
                let from = self.page.values.as_ptr().add(value_place(word * 4, dimension, self.head_size));
                let mut vectors = [S::splat_word(0); C];
                for (column, vector) in vectors.iter_mut().enumerate() {
                    *vector = load_signed::<S>(from.add(column * S::COUNT * 4));
                }
                for row in 0..R {
                    let [first, second] = &*self.weights.add(row * self.pages);
                    let (first, second) = (first.as_ptr().add(word), second.as_ptr().add(word));
                    for column in 0..C {
                        let [high, low] = totals[row][column];
                        totals[row][column] = [
                            S::dot::<true>(high, vectors[column], first),
                            S::dot::<true>(low, vectors[column], second),
                        ];
                    }
                }
            }
            for row in 0..R {
                let scale = S::splat((*self.sizes.add(row * self.pages)).scale);
                for column in 0..C {
                    let place = self.sums.add(row * self.head_size + dimension + column * S::COUNT);
                    S::store(place, S::fused(join::<S>(totals[row][column]), scale, S::load(place)));
                }
            }
        }
        C * S::COUNT
    }
}
