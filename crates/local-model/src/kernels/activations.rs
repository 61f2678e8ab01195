//! Owns the eight-bit form of the numbers that are multiplied with weights: blocks of tokens side by side, so
//! that one pass over the weights serves them all. Must not know where the numbers come from.
//! Invariant: number ≈ scale * byte, one scale for 32 columns; the sums are those of the rounded numbers.

use super::lanes::Lanes;

/// Columns that share a scale.
pub(crate) const GROUP: usize = 32;

/// Some tokens, quantized for one multiplication.
#[derive(Default)]
pub(crate) struct Activations {
    pub tokens: usize,
    pub columns: usize,
    /// For each block of tokens: word by word, the tokens of the block side by side.
    pub quants: Vec<u32>,
    /// For each block of tokens: group by group, the tokens side by side.
    pub scales: Vec<f32>,
    /// The sum of each group, then of each half group, in the same order.
    pub sums: Vec<f32>,
    pub half_sums: Vec<f32>,
}

impl Activations {
    pub(crate) fn resize(&mut self, tokens: usize, columns: usize) {
        self.tokens = tokens;
        self.columns = columns;
        self.quants.resize(tokens * columns / 4, 0);
        self.scales.resize(tokens * columns / GROUP, 0.0);
        self.sums.resize(tokens * columns / GROUP, 0.0);
        self.half_sums.resize(tokens * columns / (GROUP / 2), 0.0);
    }
}

/// The blocks `tokens` are cut into: `(first token, how many)`, widest first.
pub(crate) fn blocks(tokens: usize, widths: &'static [usize]) -> impl Iterator<Item = (usize, usize)> {
    let mut first = 0;
    std::iter::from_fn(move || {
        let width = *widths.iter().find(|&&width| width <= tokens - first)?;
        first += width;
        Some((first - width, width))
    })
}

/// Quantizes one row into place `slot` of the block that begins at token `first` and is `width` wide.
///
/// # Safety
/// `row` has as many columns as `to`, a multiple of `GROUP`, and the block lies inside `to`.
#[inline(always)]
pub(crate) unsafe fn quantize<S: Lanes>(
    row: &[f32],
    to: &mut Activations,
    first: usize,
    width: usize,
    slot: usize,
) {
    let columns = to.columns;
    // SAFETY: a block of `width` tokens takes `width` times the words and groups of one row, from `first` on.
    unsafe {
        let quants = to.quants.as_mut_ptr().add(first * columns / 4 + slot);
        let scales = to.scales.as_mut_ptr().add(first * columns / GROUP + slot);
        let sums = to.sums.as_mut_ptr().add(first * columns / GROUP + slot);
        let half_sums = to.half_sums.as_mut_ptr().add(first * columns / (GROUP / 2) + slot);
        for group in 0..columns / GROUP {
            let from = row.as_ptr().add(group * GROUP);
            let mut bytes = [0i8; GROUP];
            let (scale, halves) = quantize_group::<S>(from, &mut bytes);
            scales.add(group * width).write(scale);
            // NaN (a damaged file) makes sums that mean nothing.
            sums.add(group * width).write(scale * halves[0].wrapping_add(halves[1]) as f32);
            half_sums.add(group * 2 * width).write(scale * halves[0] as f32);
            half_sums.add((group * 2 + 1) * width).write(scale * halves[1] as f32);
            for word in 0..GROUP / 4 {
                let value = bytes.as_ptr().add(word * 4).cast::<u32>().read_unaligned();
                quants.add((group * GROUP / 4 + word) * width).write(value);
            }
        }
    }
}

/// Rounds 32 numbers to bytes; gives the scale and the sums of the two halves.
#[inline(always)]
unsafe fn quantize_group<S: Lanes>(from: *const f32, bytes: &mut [i8; GROUP]) -> (f32, [i32; 2]) {
    // SAFETY: the caller vouches for 32 numbers; every lane count divides 16.
    unsafe {
        let mut largest = S::absolute(S::load(from));
        let mut lane = S::COUNT;
        while lane < GROUP {
            largest = S::larger(largest, S::absolute(S::load(from.add(lane))));
            lane += S::COUNT;
        }
        let largest = S::largest(largest);
        let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
        let inverse = S::splat(inverse);
        let mut halves = [0; 2];
        for (half, sum) in halves.iter_mut().enumerate() {
            let mut total = S::splat_word(0);
            let mut lane = half * GROUP / 2;
            while lane < (half + 1) * GROUP / 2 {
                let rounded = S::round(S::multiply(S::load(from.add(lane)), inverse));
                S::store_bytes(bytes.as_mut_ptr().add(lane), rounded);
                total = S::add_words(total, rounded);
                lane += S::COUNT;
            }
            *sum = S::sum_words(total);
        }
        (largest / 127.0, halves)
    }
}
