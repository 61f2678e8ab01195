//! Owns the number formats of GGUF tensors: their block sizes and the plain, slow meaning of each block.
//! Must not know about kernels: those are checked against this file. Invariant: `expand` writes exactly one
//! float per weight and never reads outside the row it was given.

/// How the weights of a tensor are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q4K,
    Q5K,
    Q6K,
}

impl Format {
    pub(crate) const NAMES: &'static str =
        "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K";

    pub(crate) fn from_code(code: u32) -> Option<Format> {
        Some(match code {
            0 => Format::F32,
            1 => Format::F16,
            2 => Format::Q4_0,
            3 => Format::Q4_1,
            6 => Format::Q5_0,
            7 => Format::Q5_1,
            8 => Format::Q8_0,
            12 => Format::Q4K,
            13 => Format::Q5K,
            14 => Format::Q6K,
            30 => Format::Bf16,
            _ => return None,
        })
    }

    /// Weights in one block.
    pub(crate) const fn block(self) -> usize {
        match self {
            Format::F32 | Format::F16 | Format::Bf16 => 1,
            Format::Q4_0 | Format::Q4_1 | Format::Q5_0 | Format::Q5_1 | Format::Q8_0 => 32,
            Format::Q4K | Format::Q5K | Format::Q6K => 256,
        }
    }

    /// Bytes of one block.
    pub(crate) const fn block_bytes(self) -> usize {
        match self {
            Format::F32 => 4,
            Format::F16 | Format::Bf16 => 2,
            Format::Q4_0 => 18,
            Format::Q4_1 => 20,
            Format::Q5_0 => 22,
            Format::Q5_1 => 24,
            Format::Q8_0 => 34,
            Format::Q4K => 144,
            Format::Q5K => 176,
            Format::Q6K => 210,
        }
    }

    /// Bytes of a row of `columns` weights, which must be whole blocks.
    pub(crate) const fn row_bytes(self, columns: usize) -> usize {
        columns / self.block() * self.block_bytes()
    }

    pub(crate) const fn is_float(self) -> bool {
        matches!(self, Format::F32 | Format::F16 | Format::Bf16)
    }

    /// Writes one row as floats. `row` holds whole blocks for `out.len()` weights.
    pub(crate) fn expand(self, row: &[u8], out: &mut [f32]) {
        let blocks = row.chunks_exact(self.block_bytes());
        for (block, out) in blocks.zip(out.chunks_exact_mut(self.block())) {
            match self {
                Format::F32 => out[0] = f32::from_le_bytes([block[0], block[1], block[2], block[3]]),
                Format::F16 => out[0] = half(block),
                Format::Bf16 => out[0] = f32::from_bits(u32::from(word(block)) << 16),
                Format::Q4_0 => nibbles(&block[2..], 0, half(block), -8.0 * half(block), out),
                Format::Q4_1 => nibbles(&block[4..], 0, half(block), half(&block[2..]), out),
                Format::Q5_0 => {
                    nibbles(&block[6..], high(&block[2..]), half(block), -16.0 * half(block), out);
                }
                Format::Q5_1 => nibbles(&block[8..], high(&block[4..]), half(block), half(&block[2..]), out),
                Format::Q8_0 => {
                    let scale = half(block);
                    for (out, &quant) in out.iter_mut().zip(&block[2..]) {
                        *out = scale * f32::from(quant as i8);
                    }
                }
                Format::Q4K => expand_k(block, &[], &block[16..], out),
                Format::Q5K => expand_k(block, &block[16..48], &block[48..], out),
                Format::Q6K => expand_q6k(block, out),
            }
        }
    }
}

/// An IEEE half-precision number as a float.
pub(crate) fn half_to_float(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff);
    if magnitude >= 0x7c00 {
        return f32::from_bits(sign | 0x7f80_0000 | (magnitude & 0x3ff) << 13);
    }
    // Shifted into place the exponent is too small by 112; the product mends that and the subnormals.
    let scaled = f32::from_bits(magnitude << 13) * f32::from_bits((112 + 127) << 23);
    f32::from_bits(sign | scaled.to_bits())
}

/// The six-bit scale and minimum of group `index` in the twelve packed bytes of a K-quant block.
fn scale_and_minimum(packed: &[u8], index: usize) -> (u8, u8) {
    if index < 4 {
        return (packed[index] & 63, packed[index + 4] & 63);
    }
    let scale = (packed[index + 4] & 15) | (packed[index - 4] >> 6) << 4;
    let minimum = (packed[index + 4] >> 4) | (packed[index] >> 6) << 4;
    (scale, minimum)
}

fn word(bytes: &[u8]) -> u16 {
    u16::from_le_bytes([bytes[0], bytes[1]])
}

fn half(bytes: &[u8]) -> f32 {
    half_to_float(word(bytes))
}

fn high(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Thirty-two weights from sixteen bytes: the low nibbles come first, `high` holds a fifth bit for each.
fn nibbles(bytes: &[u8], high: u32, scale: f32, offset: f32, out: &mut [f32]) {
    for index in 0..16 {
        let low = u32::from(bytes[index] & 15) | (high >> index & 1) << 4;
        let top = u32::from(bytes[index] >> 4) | (high >> (index + 16) & 1) << 4;
        out[index] = scale * low as f32 + offset;
        out[index + 16] = scale * top as f32 + offset;
    }
}

/// Q4_K and, with the fifth bits in `high`, Q5_K.
fn expand_k(block: &[u8], high: &[u8], quants: &[u8], out: &mut [f32]) {
    let (scale, minimum) = (half(block), half(&block[2..]));
    for group in 0..8 {
        let (group_scale, group_minimum) = scale_and_minimum(&block[4..16], group);
        let (scale, offset) = (scale * f32::from(group_scale), -minimum * f32::from(group_minimum));
        for index in 0..32 {
            let byte = quants[group / 2 * 32 + index];
            let nibble = if group % 2 == 0 { byte & 15 } else { byte >> 4 };
            let fifth = high.get(index).map_or(0, |bits| (bits >> group & 1) << 4);
            out[group * 32 + index] = scale * f32::from(nibble | fifth) + offset;
        }
    }
}

fn expand_q6k(block: &[u8], out: &mut [f32]) {
    let scale = half(&block[208..]);
    for (index, out) in out.iter_mut().enumerate() {
        let (part, quarter, place) = (index / 128, index % 128 / 32, index % 32);
        let low = block[part * 64 + quarter % 2 * 32 + place] >> (quarter / 2 * 4) & 15;
        let top = block[128 + part * 32 + place] >> (quarter * 2) & 3;
        let group_scale = f32::from(block[192 + index / 16] as i8);
        *out = scale * group_scale * (f32::from(low | top << 4) - 32.0);
    }
}
