//! Owns the product of a weight matrix with some tokens. Knows panels, float rows and activations; must not
//! know what the matrix is for. Invariant: rows of different panels can be computed by different threads.

use std::ops::Range;

use super::activations::{Activations, GROUP, blocks};
use super::lanes::Lanes;
use super::panel::{Panel, Sink, Target, group, unpack, unpack_block};
use crate::format::Format;

/// A matrix and the tokens it is multiplied with.
#[derive(Clone, Copy)]
pub(crate) struct Product<'a> {
    pub format: Format,
    pub rows: usize,
    pub columns: usize,
    /// `rows` rows of whole blocks.
    pub weights: &'a [u8],
    /// The weights that are wanted after these.
    pub next: &'a [u8],
    pub activations: &'a Activations,
    /// The same tokens as floats, for weights that are floats.
    pub plain: &'a [f32],
    /// One row of results for each token, `out_stride` apart.
    pub out: *mut f32,
    pub out_stride: usize,
}

// SAFETY: `out` is only written through, each row of results by the one thread that holds its panel.
unsafe impl Sync for Product<'_> {}

/// Bytes beyond the next panel that are asked for while one is computed: its rows are read side by side, so the last of
/// its rows is needed as early as the first.
const AHEAD: usize = 8192;

impl Product<'_> {
    /// The place `distance` bytes after `rows`, counted on in the next weights where these end. It is only for hints.
    #[inline(always)]
    fn ahead(&self, rows: *const u8, distance: usize) -> *const u8 {
        let left = (self.weights.as_ptr_range().end as usize).saturating_sub(rows as usize);
        match distance.checked_sub(left) {
            None => rows.wrapping_add(distance),
            Some(beyond) => self.next.as_ptr().wrapping_add(beyond),
        }
    }
}

/// Computes the rows of some panels; a panel is `S::COUNT` rows, the last one may be short.
///
/// # Safety
/// `weights`, `activations`, `plain` and `out` have the sizes the fields say.
#[inline(always)]
pub(crate) unsafe fn multiply<S: Lanes>(
    product: &Product,
    panels: Range<usize>,
    panel: &mut Panel,
    widths: &'static [usize],
) {
    for index in panels {
        let first = index * S::COUNT;
        let count = S::COUNT.min(product.rows - first);
        // SAFETY: sizes as the caller vouches; the panel is reserved before it is written.
        unsafe {
            if product.format.is_float() {
                panel.row.resize(product.columns, 0.0);
                float_rows::<S>(product, first..first + count, &mut panel.row);
                continue;
            }
            // A short last panel is unpacked from further up, and only its own rows are kept.
            let start = (product.rows - S::COUNT).min(first);
            let stride = product.format.row_bytes(product.columns);
            let rows = product.weights.as_ptr().add(start * stride);
            if product.activations.tokens == 1 {
                let keep = Keep { first, kept: S::COUNT - count };
                one_token::<S>(product, rows, stride, keep);
                continue;
            }
            panel.reserve(S::COUNT, product.columns);
            let target = Target {
                quants: panel.quants.as_mut_ptr(),
                scales: panel.scales.as_mut_ptr(),
                offsets: panel.offsets.as_mut_ptr(),
            };
            unpack::<S>(product.format, rows, stride, product.columns, target);
            for (token, width) in blocks(product.activations.tokens, widths) {
                let keep = Keep { first, kept: S::COUNT - count };
                let block = Block { target, token, keep };
                match (group(product.format), product.format == Format::Q8_0) {
                    (16, _) => block.run::<S, 4, false>(product, width),
                    (_, true) => block.run::<S, 8, true>(product, width),
                    (_, false) => block.run::<S, 8, false>(product, width),
                }
            }
        }
    }
}

/// Blocks unpacked into registers and met with one token there: nothing is written down.
///
/// # Safety
/// As for `multiply`, and `rows` are those of a panel.
#[inline(always)]
unsafe fn one_token<S: Lanes>(product: &Product, rows: *const u8, stride: usize, keep: Keep) {
    // SAFETY: as the caller vouches. The format is a constant in each arm, so each has a loop of its own.
    unsafe {
        let total = match product.format {
            Format::Q4_0 => dot_rows::<S, false>(Format::Q4_0, product, rows, stride),
            Format::Q4_1 => dot_rows::<S, false>(Format::Q4_1, product, rows, stride),
            Format::Q5_0 => dot_rows::<S, false>(Format::Q5_0, product, rows, stride),
            Format::Q5_1 => dot_rows::<S, false>(Format::Q5_1, product, rows, stride),
            Format::Q8_0 => dot_rows::<S, true>(Format::Q8_0, product, rows, stride),
            Format::Q4K => dot_groups::<S, 8, 8>(Format::Q4K, product, rows, stride),
            Format::Q5K => dot_groups::<S, 8, 8>(Format::Q5K, product, rows, stride),
            Format::Q6K => dot_groups::<S, 16, 4>(Format::Q6K, product, rows, stride),
            Format::F32 | Format::F16 | Format::Bf16 => return,
        };
        keep.store::<S>(product.out, total);
    }
}

#[inline(always)]
unsafe fn dot_rows<S: Lanes, const WIDE: bool>(
    format: Format,
    product: &Product,
    rows: *const u8,
    stride: usize,
) -> S::Float {
    let used = S::COUNT * format.block_bytes();
    let ahead = product.ahead(rows, S::COUNT * stride + AHEAD);
    let activations = product.activations;
    // SAFETY: as for `one_token`; a block is a group, and there are as many as `columns` has.
    unsafe {
        let mut total = S::splat(0.0);
        for block in 0..product.columns / GROUP {
            let mut line = 0;
            while line < used {
                S::prefetch(ahead.wrapping_add(block * used + line));
                line += 64;
            }
            let mut dot = Dot::<S, WIDE> {
                x: activations.quants.as_ptr().add(block * GROUP / 4),
                sum: S::splat_word(0),
                scale: S::splat(0.0),
                offset: S::splat(0.0),
            };
            unpack_block::<S, Dot<S, WIDE>>(format, rows.add(block * format.block_bytes()), stride, &mut dot);
            let x_scale = S::splat(*activations.scales.as_ptr().add(block));
            let x_sum = S::splat(*activations.sums.as_ptr().add(block));
            let sum = S::multiply(S::to_float(dot.sum), x_scale);
            total = S::fused(sum, dot.scale, S::fused(dot.offset, x_sum, total));
        }
        total
    }
}

/// The same for blocks of `GROUPS` groups of `WORDS` words.
#[inline(always)]
unsafe fn dot_groups<S: Lanes, const GROUPS: usize, const WORDS: usize>(
    format: Format,
    product: &Product,
    rows: *const u8,
    stride: usize,
) -> S::Float {
    let used = S::COUNT * format.block_bytes();
    let ahead = product.ahead(rows, S::COUNT * stride + AHEAD);
    let activations = product.activations;
    let x_sums = if WORDS == 8 { &activations.sums } else { &activations.half_sums };
    // SAFETY: as for `one_token`; a block has `GROUPS * WORDS` words of each row, and the token has as many.
    unsafe {
        let mut total = S::splat(0.0);
        for block in 0..product.columns / format.block() {
            let mut line = 0;
            while line < used {
                S::prefetch(ahead.wrapping_add(block * used + line));
                line += 64;
            }
            let mut dots = Dots::<S, GROUPS, WORDS> {
                x: activations.quants.as_ptr().add(block * GROUPS * WORDS),
                sums: [S::splat_word(0); GROUPS],
                scales: [S::splat(0.0); GROUPS],
                offsets: [S::splat(0.0); GROUPS],
            };
            unpack_block::<S, _>(format, rows.add(block * format.block_bytes()), stride, &mut dots);
            for group in 0..GROUPS {
                let place = block * GROUPS + group;
                let x_scale = S::splat(*activations.scales.as_ptr().add(place * WORDS / 8));
                let x_sum = S::splat(*x_sums.as_ptr().add(place));
                let sum = S::multiply(S::to_float(dots.sums[group]), x_scale);
                total = S::fused(sum, dots.scales[group], S::fused(dots.offsets[group], x_sum, total));
            }
        }
        total
    }
}

/// Multiplies the words of a block of several groups with those of one token as they are unpacked.
struct Dots<S: Lanes, const GROUPS: usize, const WORDS: usize> {
    x: *const u32,
    sums: [S::Int; GROUPS],
    scales: [S::Float; GROUPS],
    offsets: [S::Float; GROUPS],
}

impl<S: Lanes, const GROUPS: usize, const WORDS: usize> Sink<S> for Dots<S, GROUPS, WORDS> {
    #[inline(always)]
    unsafe fn put(&mut self, word: usize, value: S::Int) {
        let sum = &mut self.sums[word / WORDS];
        // SAFETY: the word is one of the block, and the token at `x` has as many.
        unsafe { *sum = S::dot::<false>(*sum, value, self.x.add(word)) }
    }

    #[inline(always)]
    unsafe fn weigh(&mut self, group: usize, scale: S::Float, offset: S::Float) {
        (self.scales[group], self.offsets[group]) = (scale, offset);
    }
}

/// Multiplies the words of a block with those of one token as they are unpacked.
struct Dot<S: Lanes, const WIDE: bool> {
    x: *const u32,
    sum: S::Int,
    scale: S::Float,
    offset: S::Float,
}

impl<S: Lanes, const WIDE: bool> Sink<S> for Dot<S, WIDE> {
    #[inline(always)]
    unsafe fn put(&mut self, word: usize, value: S::Int) {
        // SAFETY: a block has eight words, and so has the token at `x`.
        unsafe { self.sum = S::dot::<WIDE>(self.sum, value, self.x.add(word)) }
    }

    #[inline(always)]
    unsafe fn weigh(&mut self, _: usize, scale: S::Float, offset: S::Float) {
        (self.scale, self.offset) = (scale, offset);
    }
}

/// Where the results of a panel belong.
#[derive(Clone, Copy)]
struct Keep {
    first: usize,
    /// Lanes of a short panel whose rows another panel has computed.
    kept: usize,
}

impl Keep {
    /// Writes the results of one token, whose row begins at `out`.
    #[inline(always)]
    unsafe fn store<S: Lanes>(self, out: *mut f32, total: S::Float) {
        // SAFETY: a whole panel has `COUNT` results; a short one writes only those of its own rows.
        unsafe {
            let out = out.add(self.first);
            if self.kept == 0 {
                return S::store(out, total);
            }
            let mut lanes = [0f32; 16];
            S::store(lanes.as_mut_ptr(), total);
            std::ptr::copy_nonoverlapping(lanes.as_ptr().add(self.kept), out, S::COUNT - self.kept);
        }
    }
}

/// An unpacked panel against one block of tokens.
#[derive(Clone, Copy)]
struct Block {
    target: Target,
    token: usize,
    keep: Keep,
}

impl Block {
    #[inline(always)]
    unsafe fn run<S: Lanes, const STEPS: usize, const WIDE: bool>(self, product: &Product, width: usize) {
        // SAFETY: as for `multiply`.
        unsafe {
            match width {
                1 => self.tile::<S, STEPS, WIDE, 1>(product),
                2 => self.tile::<S, STEPS, WIDE, 2>(product),
                4 => self.tile::<S, STEPS, WIDE, 4>(product),
                8 => self.tile::<S, STEPS, WIDE, 8>(product),
                12 => self.tile::<S, STEPS, WIDE, 12>(product),
                _ => {}
            }
        }
    }

    /// `T` tokens at once; a group is `STEPS` words of each row.
    #[inline(always)]
    unsafe fn tile<S: Lanes, const STEPS: usize, const WIDE: bool, const T: usize>(self, product: &Product) {
        let columns = product.columns;
        let activations = product.activations;
        // SAFETY: as for `multiply`; group and word indices stay below those of `columns`.
        unsafe {
            let x = activations.quants.as_ptr().add(self.token * columns / 4);
            let x_scales = activations.scales.as_ptr().add(self.token * columns / GROUP);
            let x_sums = if STEPS == 8 { &activations.sums } else { &activations.half_sums };
            let x_sums = x_sums.as_ptr().add(self.token * columns / (STEPS * 4));
            let mut totals = [S::splat(0.0); T];
            for group in 0..columns / (STEPS * 4) {
                let mut sums = [S::splat_word(0); T];
                for step in 0..STEPS {
                    let word = group * STEPS + step;
                    let weights = S::load_words(self.target.quants.add(word * S::COUNT));
                    for token in 0..T {
                        sums[token] = S::dot::<WIDE>(sums[token], weights, x.add(word * T + token));
                    }
                }
                let scale = S::load(self.target.scales.add(group * S::COUNT));
                let offset = S::load(self.target.offsets.add(group * S::COUNT));
                for token in 0..T {
                    let x_scale = S::splat(*x_scales.add(group * STEPS / 8 * T + token));
                    let x_sum = S::splat(*x_sums.add(group * T + token));
                    let sum = S::multiply(S::to_float(sums[token]), x_scale);
                    totals[token] = S::fused(sum, scale, S::fused(offset, x_sum, totals[token]));
                }
            }
            for (token, &total) in totals.iter().enumerate() {
                let out = product.out.add((self.token + token) * product.out_stride);
                self.keep.store::<S>(out, total);
            }
        }
    }
}

/// Rows of floats: each is expanded once and met with four tokens at a time.
#[inline(always)]
unsafe fn float_rows<S: Lanes>(product: &Product, rows: Range<usize>, expanded: &mut [f32]) {
    let columns = product.columns;
    let stride = product.format.row_bytes(columns);
    for row in rows {
        product.format.expand(&product.weights[row * stride..(row + 1) * stride], expanded);
        let mut token = 0;
        // SAFETY: as for `multiply`.
        unsafe {
            while token < product.activations.tokens {
                let left = product.activations.tokens - token;
                let out = product.out.add(token * product.out_stride + row);
                let x = product.plain.as_ptr().add(token * columns);
                token += if left >= 4 {
                    float_tile::<S, 4>(expanded.as_ptr(), x, columns, out, product.out_stride)
                } else {
                    float_tile::<S, 1>(expanded.as_ptr(), x, columns, out, product.out_stride)
                };
            }
        }
    }
}

#[inline(always)]
unsafe fn float_tile<S: Lanes, const T: usize>(
    row: *const f32,
    x: *const f32,
    columns: usize,
    out: *mut f32,
    out_stride: usize,
) -> usize {
    // SAFETY: as for `multiply`; columns are a multiple of 32 and so of every lane count.
    unsafe {
        let mut totals = [S::splat(0.0); T];
        let mut column = 0;
        while column < columns {
            let weights = S::load(row.add(column));
            for (token, total) in totals.iter_mut().enumerate() {
                *total = S::fused(weights, S::load(x.add(token * columns + column)), *total);
            }
            column += S::COUNT;
        }
        for (token, &total) in totals.iter().enumerate() {
            out.add(token * out_stride).write(S::sum(total));
        }
    }
    T
}
