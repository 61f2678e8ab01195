//! Owns the small per-number work between the products: normalizing, gating, exponentials, rotation.
//! Knows no layer. Invariant: lengths are multiples of 16, which every lane count divides.

use super::lanes::Lanes;

/// Root-mean-square normalization: `out = x / rms(x) * weight`.
///
/// # Safety
/// The slices have one length, a multiple of 16.
#[inline(always)]
pub(super) unsafe fn normalize<S: Lanes>(x: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) {
    let length = x.len();
    // SAFETY: all reads and writes are below `length`.
    unsafe {
        let mut squares = S::splat(0.0);
        let mut index = 0;
        while index < length {
            let value = S::load(x.as_ptr().add(index));
            squares = S::fused(value, value, squares);
            index += S::COUNT;
        }
        let factor = S::splat(1.0 / (S::sum(squares) / length as f32 + epsilon).sqrt());
        let mut index = 0;
        while index < length {
            let value = S::multiply(S::load(x.as_ptr().add(index)), factor);
            let value = S::multiply(value, S::load(weight.as_ptr().add(index)));
            S::store(out.as_mut_ptr().add(index), value);
            index += S::COUNT;
        }
    }
}

/// The gated unit: `gate = gate * sigmoid(gate) * up`.
///
/// # Safety
/// The slices have one length, a multiple of 16.
#[inline(always)]
pub(super) unsafe fn gate<S: Lanes>(gate: &mut [f32], up: &[f32]) {
    let length = gate.len();
    // SAFETY: all reads and writes are below `length`.
    unsafe {
        let mut index = 0;
        while index < length {
            let place = gate.as_mut_ptr().add(index);
            let value = S::load(place);
            let minus = S::multiply(value, S::splat(-1.0));
            let below = S::add(exponential::<S>(minus), S::splat(1.0));
            S::store(place, S::multiply(S::divide(value, below), S::load(up.as_ptr().add(index))));
            index += S::COUNT;
        }
    }
}

/// `to += from`.
///
/// # Safety
/// The slices have one length, a multiple of 16.
#[inline(always)]
pub(super) unsafe fn accumulate<S: Lanes>(to: &mut [f32], from: &[f32]) {
    // SAFETY: all reads and writes are below the length.
    unsafe {
        let mut index = 0;
        while index < to.len() {
            let place = to.as_mut_ptr().add(index);
            S::store(place, S::add(S::load(place), S::load(from.as_ptr().add(index))));
            index += S::COUNT;
        }
    }
}

/// e to the power of each lane, to about one part in ten million; outside ±87 it saturates.
#[inline(always)]
pub(super) unsafe fn exponential<S: Lanes>(x: S::Float) -> S::Float {
    unsafe {
        let x = S::smaller(S::larger(x, S::splat(-87.0)), S::splat(87.0));
        let power = S::round(S::multiply(x, S::splat(std::f32::consts::LOG2_E)));
        let whole = S::to_float(power);
        // ln 2 in two parts, so that the remainder keeps its last bits.
        let rest = S::fused(whole, S::splat(-0.693_359_4), x);
        let rest = S::fused(whole, S::splat(2.121_944_4e-4), rest);
        let mut value = S::splat(1.0 / 720.0);
        for factor in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
            value = S::fused(value, rest, S::splat(factor));
        }
        let two_to = S::bits_to_float(S::shift_left::<23>(S::add_words(power, S::splat_word(127))));
        S::multiply(value, two_to)
    }
}
