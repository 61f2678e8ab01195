//! Owns the vector operations in NEON, with or without the dot-product instruction. Knows nothing about models.
//! Invariant: only reached after the CPU said it has what the type names.

use std::arch::aarch64::*;

use super::lanes::Lanes;
use crate::format::half_to_float;

/// NEON; with `DOT` also the dot-product extension.
#[derive(Clone, Copy)]
pub(super) struct Neon<const DOT: bool>;

impl<const DOT: bool> Lanes for Neon<DOT> {
    const COUNT: usize = 4;
    const SIGNED_BYTES: bool = true;
    type Int = uint32x4_t;
    type Float = float32x4_t;

    #[inline(always)]
    unsafe fn rows16(base: *const u8, stride: usize) -> [uint32x4_t; 4] {
        unsafe {
            let row = |index: usize| vreinterpretq_u32_u8(vld1q_u8(base.add(index * stride)));
            let low = vtrnq_u32(row(0), row(1));
            let high = vtrnq_u32(row(2), row(3));
            let join = |a: uint32x4_t, b: uint32x4_t| {
                let (a, b) = (vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b));
                (vreinterpretq_u32_u64(vtrn1q_u64(a, b)), vreinterpretq_u32_u64(vtrn2q_u64(a, b)))
            };
            let (first, third) = join(low.0, high.0);
            let (second, fourth) = join(low.1, high.1);
            [first, second, third, fourth]
        }
    }

    #[inline(always)]
    unsafe fn words(base: *const u8, stride: usize) -> uint32x4_t {
        unsafe {
            let mut words = [0u32; 4];
            for (lane, word) in words.iter_mut().enumerate() {
                *word = base.add(lane * stride).cast::<u32>().read_unaligned();
            }
            vld1q_u32(words.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn load_words(from: *const u32) -> uint32x4_t {
        unsafe { vld1q_u32(from) }
    }
    #[inline(always)]
    unsafe fn store_words(to: *mut u32, value: uint32x4_t) {
        unsafe { vst1q_u32(to, value) }
    }
    #[inline(always)]
    unsafe fn splat_word(word: u32) -> uint32x4_t {
        unsafe { vdupq_n_u32(word) }
    }
    #[inline(always)]
    unsafe fn and(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        unsafe { vandq_u32(a, b) }
    }
    #[inline(always)]
    unsafe fn or(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        unsafe { vorrq_u32(a, b) }
    }
    #[inline(always)]
    unsafe fn xor(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        unsafe { veorq_u32(a, b) }
    }
    #[inline(always)]
    unsafe fn shift_right<const N: u32>(value: uint32x4_t) -> uint32x4_t {
        unsafe { vshlq_u32(value, vdupq_n_s32(-(N as i32))) }
    }
    #[inline(always)]
    unsafe fn shift_left<const N: u32>(value: uint32x4_t) -> uint32x4_t {
        unsafe { vshlq_u32(value, vdupq_n_s32(N as i32)) }
    }
    #[inline(always)]
    unsafe fn multiply_words(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        unsafe { vmulq_u32(a, b) }
    }
    #[inline(always)]
    unsafe fn dot<const WIDE: bool>(sum: uint32x4_t, weights: uint32x4_t, x: *const u32) -> uint32x4_t {
        unsafe {
            let weights = vreinterpretq_s8_u32(weights);
            let x = vreinterpretq_s8_u32(vdupq_n_u32(x.read_unaligned()));
            let mut sum = vreinterpretq_s32_u32(sum);
            if DOT {
                // The intrinsic for this instruction is not in the stable library.
                std::arch::asm!(
                    "sdot {sum:v}.4s, {weights:v}.16b, {x:v}.16b",
                    sum = inout(vreg) sum, weights = in(vreg) weights, x = in(vreg) x,
                    options(pure, nomem, nostack, preserves_flags)
                );
            } else {
                let low = vmull_s8(vget_low_s8(weights), vget_low_s8(x));
                let high = vmull_high_s8(weights, x);
                sum = vaddq_s32(sum, vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high)));
            }
            vreinterpretq_u32_s32(sum)
        }
    }

    #[inline(always)]
    unsafe fn to_float(value: uint32x4_t) -> float32x4_t {
        unsafe { vcvtq_f32_s32(vreinterpretq_s32_u32(value)) }
    }
    #[inline(always)]
    unsafe fn half_to_float(value: uint32x4_t) -> float32x4_t {
        unsafe {
            let mut words = [0u32; 4];
            vst1q_u32(words.as_mut_ptr(), value);
            let mut floats = [0f32; 4];
            for (float, word) in floats.iter_mut().zip(words) {
                *float = half_to_float(word as u16);
            }
            vld1q_f32(floats.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn round(value: float32x4_t) -> uint32x4_t {
        unsafe { vreinterpretq_u32_s32(vcvtnq_s32_f32(value)) }
    }
    #[inline(always)]
    unsafe fn bits_to_float(value: uint32x4_t) -> float32x4_t {
        unsafe { vreinterpretq_f32_u32(value) }
    }
    #[inline(always)]
    unsafe fn add_words(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        unsafe { vaddq_u32(a, b) }
    }
    #[inline(always)]
    unsafe fn sum_words(value: uint32x4_t) -> i32 {
        unsafe { vaddvq_u32(value) as i32 }
    }
    #[inline(always)]
    unsafe fn store_bytes(to: *mut i8, value: uint32x4_t) {
        unsafe {
            let words = vmovn_u32(value);
            let bytes = vmovn_u16(vcombine_u16(words, words));
            to.cast::<u32>().write_unaligned(vget_lane_u32::<0>(vreinterpret_u32_u8(bytes)));
        }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> float32x4_t {
        unsafe { vld1q_f32(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, value: float32x4_t) {
        unsafe { vst1q_f32(to, value) }
    }
    #[inline(always)]
    unsafe fn splat(value: f32) -> float32x4_t {
        unsafe { vdupq_n_f32(value) }
    }
    #[inline(always)]
    unsafe fn add(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        unsafe { vaddq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn multiply(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        unsafe { vmulq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn divide(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        unsafe { vdivq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn fused(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        unsafe { vfmaq_f32(c, a, b) }
    }
    #[inline(always)]
    unsafe fn larger(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        unsafe { vmaxq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn smaller(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        unsafe { vminq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn absolute(value: float32x4_t) -> float32x4_t {
        unsafe { vabsq_f32(value) }
    }
    #[inline(always)]
    unsafe fn sum(value: float32x4_t) -> f32 {
        unsafe { vaddvq_f32(value) }
    }
    #[inline(always)]
    unsafe fn largest(value: float32x4_t) -> f32 {
        unsafe { vmaxvq_f32(value) }
    }
}
