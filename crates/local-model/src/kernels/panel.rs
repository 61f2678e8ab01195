//! Owns the one layout all quantized weights are turned into before they are multiplied: a panel of
//! `COUNT` rows, word by word side by side, with a scale and an offset for each group. Knows the block formats;
//! must not know about activations. Invariant: weight = scale * byte + offset, for every byte of a panel.

use super::lanes::Lanes;
use crate::format::Format;

/// Room for one unpacked panel. Grown once to the widest tensor and reused.
#[derive(Default)]
pub(crate) struct Panel {
    pub quants: Vec<u32>,
    pub scales: Vec<f32>,
    pub offsets: Vec<f32>,
    /// One row of float weights, which need no panel.
    pub row: Vec<f32>,
}

impl Panel {
    pub(crate) fn reserve(&mut self, lanes: usize, columns: usize) {
        self.quants.resize(self.quants.len().max(lanes * columns / 4), 0);
        // The smallest group holds sixteen weights.
        self.scales.resize(self.scales.len().max(lanes * columns / 16), 0.0);
        self.offsets.resize(self.scales.len(), 0.0);
    }
}

/// The receiver of unpacked blocks: words and groups are counted from the beginning of a block.
pub(crate) trait Sink<S: Lanes> {
    /// Takes four bytes of each row.
    unsafe fn put(&mut self, word: usize, value: S::Int);
    /// Takes the scale and the offset of a group of each row. It comes before the words of the group.
    unsafe fn weigh(&mut self, group: usize, scale: S::Float, offset: S::Float);
}

/// Where `unpack` writes: the three arrays of a panel with room for its columns.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub quants: *mut u32,
    pub scales: *mut f32,
    pub offsets: *mut f32,
}

/// Unpacks `S::COUNT` rows that begin at `rows`, `stride` bytes apart, into `target`.
///
/// # Safety
/// The rows are readable for `columns` weights each and `target` was reserved for them.
#[inline(always)]
pub(crate) unsafe fn unpack<S: Lanes>(
    format: Format,
    rows: *const u8,
    stride: usize,
    columns: usize,
    target: Target,
) {
    // While a panel is unpacked the one after it is fetched, as many bytes at a time as are used up.
    let next = rows.wrapping_add(S::COUNT * stride);
    let used = S::COUNT * format.block_bytes();
    for block in 0..columns / format.block() {
        // SAFETY: the block lies inside the row, and its words and groups inside the target.
        unsafe {
            let mut line = 0;
            while line < used {
                S::prefetch(next.wrapping_add(block * used + line));
                line += 64;
            }
            let from = rows.add(block * format.block_bytes());
            unpack_block::<S, Target>(format, from, stride, &mut target.at::<S>(format, block));
        }
    }
}

/// Unpacks one block of each of `S::COUNT` rows.
///
/// # Safety
/// The block is readable in each row, `stride` bytes apart, and `to` has room for it.
#[inline(always)]
pub(crate) unsafe fn unpack_block<S: Lanes, K: Sink<S>>(
    format: Format,
    from: *const u8,
    stride: usize,
    to: &mut K,
) {
    // SAFETY: as the caller vouches.
    unsafe {
        match format {
            Format::Q4_1 => unpack_q4_1::<S, K>(from, stride, to),
            Format::Q8_0 => unpack_q8_0::<S, K>(from, stride, to),
            Format::Q4_0 => unpack_q4_0::<S, K>(from, stride, to),
            Format::Q5_0 => unpack_q5::<S, K, false>(from, stride, to),
            Format::Q5_1 => unpack_q5::<S, K, true>(from, stride, to),
            Format::Q4K => unpack_k::<S, K, false>(from, stride, to),
            Format::Q5K => unpack_k::<S, K, true>(from, stride, to),
            Format::Q6K => unpack_q6k::<S, K>(from, stride, to),
            // Floats are multiplied as they are, in `multiply.rs`.
            Format::F32 | Format::F16 | Format::Bf16 => {}
        }
    }
}

/// Weights that share a scale.
pub(crate) const fn group(format: Format) -> usize {
    if matches!(format, Format::Q6K) { 16 } else { 32 }
}

impl Target {
    #[inline(always)]
    unsafe fn at<S: Lanes>(self, format: Format, block: usize) -> Target {
        let words = block * format.block() / 4 * S::COUNT;
        let groups = block * format.block() / group(format) * S::COUNT;
        // SAFETY: the caller counts blocks inside the reserved columns.
        unsafe {
            Target {
                quants: self.quants.add(words),
                scales: self.scales.add(groups),
                offsets: self.offsets.add(groups),
            }
        }
    }
}

impl<S: Lanes> Sink<S> for Target {
    #[inline(always)]
    unsafe fn put(&mut self, word: usize, value: S::Int) {
        // SAFETY: as in `at`.
        unsafe { S::store_words(self.quants.add(word * S::COUNT), value) }
    }

    #[inline(always)]
    unsafe fn weigh(&mut self, group: usize, scale: S::Float, offset: S::Float) {
        // SAFETY: as in `at`.
        unsafe {
            S::store(self.scales.add(group * S::COUNT), scale);
            S::store(self.offsets.add(group * S::COUNT), offset);
        }
    }
}

#[inline(always)]
unsafe fn low<S: Lanes>(value: S::Int) -> S::Int {
    unsafe { S::and(value, S::splat_word(0x0f0f_0f0f)) }
}

#[inline(always)]
unsafe fn high<S: Lanes>(value: S::Int) -> S::Int {
    unsafe { S::and(S::shift_right::<4>(value), S::splat_word(0x0f0f_0f0f)) }
}

/// Sixteen bytes of nibbles: low ones are words 0 to 3, high ones words 4 to 7.
#[inline(always)]
unsafe fn nibbles<S: Lanes, K: Sink<S>>(from: *const u8, stride: usize, to: &mut K) {
    unsafe {
        let bytes = S::rows16(from, stride);
        for (word, &bytes) in bytes.iter().enumerate() {
            to.put(word, low::<S>(bytes));
            to.put(word + 4, high::<S>(bytes));
        }
    }
}

#[inline(always)]
unsafe fn unpack_q4_1<S: Lanes, K: Sink<S>>(from: *const u8, stride: usize, to: &mut K) {
    unsafe {
        let pair = S::words(from, stride);
        to.weigh(0, S::half_to_float(pair), S::half_to_float(S::shift_right::<16>(pair)));
        nibbles::<S, K>(from.add(4), stride, to);
    }
}

#[inline(always)]
unsafe fn unpack_q4_0<S: Lanes, K: Sink<S>>(from: *const u8, stride: usize, to: &mut K) {
    unsafe {
        let scale = S::half_to_float(S::words(from, stride));
        to.weigh(0, scale, S::multiply(scale, S::splat(-8.0)));
        nibbles::<S, K>(from.add(2), stride, to);
    }
}

#[inline(always)]
unsafe fn unpack_q8_0<S: Lanes, K: Sink<S>>(from: *const u8, stride: usize, to: &mut K) {
    unsafe {
        let scale = S::half_to_float(S::words(from, stride));
        let (flip, shift) = if S::SIGNED_BYTES { (0, 0.0) } else { (0x8080_8080, -128.0) };
        to.weigh(0, scale, S::multiply(scale, S::splat(shift)));
        for half in 0..2 {
            let bytes = S::rows16(from.add(2 + half * 16), stride);
            for (word, &bytes) in bytes.iter().enumerate() {
                to.put(half * 4 + word, S::xor(bytes, S::splat_word(flip)));
            }
        }
    }
}

/// Q5_1 when `OFFSET`, else Q5_0.
#[inline(always)]
unsafe fn unpack_q5<S: Lanes, K: Sink<S>, const OFFSET: bool>(from: *const u8, stride: usize, to: &mut K) {
    unsafe {
        let pair = S::words(from, stride);
        let scale = S::half_to_float(pair);
        let offset = if OFFSET {
            S::half_to_float(S::shift_right::<16>(pair))
        } else {
            S::multiply(scale, S::splat(-16.0))
        };
        to.weigh(0, scale, offset);
        let bits = from.add(if OFFSET { 4 } else { 2 });
        let mut fifth = S::words(bits, stride);
        let bytes = S::rows16(bits.add(4), stride);
        for word in 0..8 {
            let nibble = if word < 4 { low::<S>(bytes[word]) } else { high::<S>(bytes[word - 4]) };
            to.put(word, S::or(nibble, spread::<S>(fifth)));
            fifth = S::shift_right::<4>(fifth);
        }
    }
}

/// The four lowest bits of each lane, one into bit 4 of each byte.
#[inline(always)]
unsafe fn spread<S: Lanes>(bits: S::Int) -> S::Int {
    unsafe {
        let copies = S::multiply_words(S::and(bits, S::splat_word(15)), S::splat_word(0x0020_4081));
        S::shift_left::<4>(S::and(copies, S::splat_word(0x0101_0101)))
    }
}

/// Q5_K when `FIFTH`, else Q4_K.
#[inline(always)]
unsafe fn unpack_k<S: Lanes, K: Sink<S>, const FIFTH: bool>(from: *const u8, stride: usize, to: &mut K) {
    unsafe {
        // Two halves and twelve bytes of scales and minimums are the first sixteen bytes of a block.
        let [pair, scales, minimums, rest] = S::rows16(from, stride);
        let scale = S::half_to_float(pair);
        let minimum = S::multiply(S::half_to_float(S::shift_right::<16>(pair)), S::splat(-1.0));
        let factors = k_factors::<S>(scales, minimums, rest);
        for group in 0..8 {
            let [factor, offset] = factors[group];
            to.weigh(
                group,
                S::multiply(scale, S::to_float(factor)),
                S::multiply(minimum, S::to_float(offset)),
            );
        }
        let quants = from.add(if FIFTH { 48 } else { 16 });
        for half in 0..2 {
            let mut fifths = if FIFTH { S::rows16(from.add(16 + half * 16), stride) } else { [pair; 4] };
            for two_groups in 0..4 {
                let bytes = S::rows16(quants.add(two_groups * 32 + half * 16), stride);
                for word in 0..4 {
                    let mut first = low::<S>(bytes[word]);
                    let mut second = high::<S>(bytes[word]);
                    if FIFTH {
                        let bit = S::splat_word(0x1010_1010);
                        first = S::or(first, S::and(S::shift_left::<4>(fifths[word]), bit));
                        second = S::or(second, S::and(S::shift_left::<3>(fifths[word]), bit));
                        fifths[word] = S::shift_right::<2>(fifths[word]);
                    }
                    let place = two_groups * 16 + half * 4 + word;
                    to.put(place, first);
                    to.put(place + 8, second);
                }
            }
        }
    }
}

/// The six-bit scales and minimums of the eight groups in the twelve packed bytes of each row, as `scale_and_minimum` reads
/// them of one row.
#[inline(always)]
unsafe fn k_factors<S: Lanes>(scales: S::Int, minimums: S::Int, rest: S::Int) -> [[S::Int; 2]; 8] {
    // SAFETY: only registers; the caller vouches for the instructions.
    unsafe {
        [
            [six::<S>(scales), six::<S>(minimums)],
            [six::<S>(S::shift_right::<8>(scales)), six::<S>(S::shift_right::<8>(minimums))],
            [six::<S>(S::shift_right::<16>(scales)), six::<S>(S::shift_right::<16>(minimums))],
            [six::<S>(S::shift_right::<24>(scales)), six::<S>(S::shift_right::<24>(minimums))],
            [
                late::<S>(rest, S::shift_right::<2>(scales)),
                late::<S>(S::shift_right::<4>(rest), S::shift_right::<2>(minimums)),
            ],
            [
                late::<S>(S::shift_right::<8>(rest), S::shift_right::<10>(scales)),
                late::<S>(S::shift_right::<12>(rest), S::shift_right::<10>(minimums)),
            ],
            [
                late::<S>(S::shift_right::<16>(rest), S::shift_right::<18>(scales)),
                late::<S>(S::shift_right::<20>(rest), S::shift_right::<18>(minimums)),
            ],
            [
                late::<S>(S::shift_right::<24>(rest), S::shift_right::<26>(scales)),
                late::<S>(S::shift_right::<28>(rest), S::shift_right::<26>(minimums)),
            ],
        ]
    }
}

/// The lowest six bits of each lane.
#[inline(always)]
unsafe fn six<S: Lanes>(word: S::Int) -> S::Int {
    unsafe { S::and(word, S::splat_word(63)) }
}

/// A number of six bits: the lowest four of one word, bits 4 and 5 of another.
#[inline(always)]
unsafe fn late<S: Lanes>(low: S::Int, high: S::Int) -> S::Int {
    unsafe { S::or(S::and(low, S::splat_word(15)), S::and(high, S::splat_word(0x30))) }
}

/// The lowest byte of each lane, with its sign.
#[inline(always)]
unsafe fn signed<S: Lanes>(word: S::Int) -> S::Int {
    unsafe {
        let flipped = S::xor(S::and(word, S::splat_word(0xff)), S::splat_word(0x80));
        S::add_words(flipped, S::splat_word(-128i32 as u32))
    }
}

/// The four signed bytes of each lane.
#[inline(always)]
unsafe fn signed_bytes<S: Lanes>(word: S::Int) -> [S::Int; 4] {
    // SAFETY: only registers; the caller vouches for the instructions.
    unsafe {
        [
            signed::<S>(word),
            signed::<S>(S::shift_right::<8>(word)),
            signed::<S>(S::shift_right::<16>(word)),
            signed::<S>(S::shift_right::<24>(word)),
        ]
    }
}

#[inline(always)]
unsafe fn unpack_q6k<S: Lanes, K: Sink<S>>(from: *const u8, stride: usize, to: &mut K) {
    unsafe {
        // The scale is the last two bytes of the block: they are read with the two before them.
        let scale = S::half_to_float(S::shift_right::<16>(S::words(from.add(206), stride)));
        let factors = S::rows16(from.add(192), stride);
        for four in 0..4 {
            let bytes = signed_bytes::<S>(factors[four]);
            for byte in 0..4 {
                let group_scale = S::multiply(scale, S::to_float(bytes[byte]));
                to.weigh(four * 4 + byte, group_scale, S::multiply(group_scale, S::splat(-32.0)));
            }
        }
        for part in 0..2 {
            for half in 0..2 {
                let tops = S::rows16(from.add(128 + part * 32 + half * 16), stride);
                let near = S::rows16(from.add(part * 64 + half * 16), stride);
                let far = S::rows16(from.add(part * 64 + 32 + half * 16), stride);
                for word in 0..4 {
                    let top = tops[word];
                    let place = part * 32 + half * 4 + word;
                    to.put(place, S::or(low::<S>(near[word]), bits::<S>(S::shift_left::<4>(top))));
                    to.put(place + 8, S::or(low::<S>(far[word]), bits::<S>(S::shift_left::<2>(top))));
                    to.put(place + 16, S::or(high::<S>(near[word]), bits::<S>(top)));
                    to.put(place + 24, S::or(high::<S>(far[word]), bits::<S>(S::shift_right::<2>(top))));
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn bits<S: Lanes>(value: S::Int) -> S::Int {
    unsafe { S::and(value, S::splat_word(0x3030_3030)) }
}
