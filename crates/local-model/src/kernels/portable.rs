//! Owns the vector operations in plain Rust, for CPUs with none of the better ones and as the reference the
//! others are tested against. Invariant: no instruction beyond the compiler's baseline.

use super::lanes::Lanes;
use crate::format::half_to_float;

const COUNT: usize = 4;

#[derive(Clone, Copy)]
pub(super) struct Portable;

macro_rules! each {
    (|$index:ident| $value:expr) => {{
        let mut out = [Default::default(); COUNT];
        let mut $index = 0;
        while $index < COUNT {
            out[$index] = $value;
            $index += 1;
        }
        out
    }};
}

impl Lanes for Portable {
    const COUNT: usize = COUNT;
    const SIGNED_BYTES: bool = true;
    type Int = [u32; COUNT];
    type Float = [f32; COUNT];

    #[inline(always)]
    unsafe fn rows16(base: *const u8, stride: usize) -> [[u32; COUNT]; 4] {
        // SAFETY: the caller vouches for sixteen readable bytes in each row.
        unsafe {
            [
                Self::words(base, stride),
                Self::words(base.add(4), stride),
                Self::words(base.add(8), stride),
                Self::words(base.add(12), stride),
            ]
        }
    }
    #[inline(always)]
    unsafe fn words(base: *const u8, stride: usize) -> [u32; COUNT] {
        // SAFETY: the caller vouches for four readable bytes in each row.
        each!(|lane| u32::from_le(unsafe { base.add(lane * stride).cast::<u32>().read_unaligned() }))
    }
    #[inline(always)]
    unsafe fn load_words(from: *const u32) -> [u32; COUNT] {
        // SAFETY: the caller vouches for the lanes.
        unsafe { from.cast::<[u32; COUNT]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store_words(to: *mut u32, value: [u32; COUNT]) {
        // SAFETY: the caller vouches for the lanes.
        unsafe { to.cast::<[u32; COUNT]>().write_unaligned(value) }
    }
    #[inline(always)]
    unsafe fn splat_word(word: u32) -> [u32; COUNT] {
        [word; COUNT]
    }
    #[inline(always)]
    unsafe fn and(a: [u32; COUNT], b: [u32; COUNT]) -> [u32; COUNT] {
        each!(|lane| a[lane] & b[lane])
    }
    #[inline(always)]
    unsafe fn or(a: [u32; COUNT], b: [u32; COUNT]) -> [u32; COUNT] {
        each!(|lane| a[lane] | b[lane])
    }
    #[inline(always)]
    unsafe fn xor(a: [u32; COUNT], b: [u32; COUNT]) -> [u32; COUNT] {
        each!(|lane| a[lane] ^ b[lane])
    }
    #[inline(always)]
    unsafe fn shift_right<const N: u32>(value: [u32; COUNT]) -> [u32; COUNT] {
        each!(|lane| value[lane] >> N)
    }
    #[inline(always)]
    unsafe fn shift_left<const N: u32>(value: [u32; COUNT]) -> [u32; COUNT] {
        each!(|lane| value[lane] << N)
    }
    #[inline(always)]
    unsafe fn multiply_words(a: [u32; COUNT], b: [u32; COUNT]) -> [u32; COUNT] {
        each!(|lane| a[lane].wrapping_mul(b[lane]))
    }
    #[inline(always)]
    unsafe fn dot<const WIDE: bool>(sum: [u32; COUNT], weights: [u32; COUNT], x: *const u32) -> [u32; COUNT] {
        // SAFETY: the caller vouches for one word at `x`.
        let x = unsafe { x.read_unaligned() }.to_le_bytes();
        each!(|lane| {
            let weights = weights[lane].to_le_bytes();
            let mut sum = sum[lane] as i32;
            let mut index = 0;
            while index < 4 {
                sum += i32::from(weights[index] as i8) * i32::from(x[index] as i8);
                index += 1;
            }
            sum as u32
        })
    }

    #[inline(always)]
    unsafe fn to_float(value: [u32; COUNT]) -> [f32; COUNT] {
        each!(|lane| value[lane] as i32 as f32)
    }
    #[inline(always)]
    unsafe fn half_to_float(value: [u32; COUNT]) -> [f32; COUNT] {
        each!(|lane| half_to_float(value[lane] as u16))
    }
    #[inline(always)]
    unsafe fn round(value: [f32; COUNT]) -> [u32; COUNT] {
        each!(|lane| value[lane].round_ties_even() as i32 as u32)
    }
    #[inline(always)]
    unsafe fn bits_to_float(value: [u32; COUNT]) -> [f32; COUNT] {
        each!(|lane| f32::from_bits(value[lane]))
    }
    #[inline(always)]
    unsafe fn add_words(a: [u32; COUNT], b: [u32; COUNT]) -> [u32; COUNT] {
        each!(|lane| a[lane].wrapping_add(b[lane]))
    }
    #[inline(always)]
    unsafe fn sum_words(value: [u32; COUNT]) -> i32 {
        value[0].wrapping_add(value[1]).wrapping_add(value[2]).wrapping_add(value[3]) as i32
    }
    #[inline(always)]
    unsafe fn store_bytes(to: *mut i8, value: [u32; COUNT]) {
        let bytes: [i8; COUNT] = each!(|lane| value[lane] as i8);
        // SAFETY: the caller vouches for the lanes.
        unsafe { to.cast::<[i8; COUNT]>().write_unaligned(bytes) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> [f32; COUNT] {
        // SAFETY: the caller vouches for the lanes.
        unsafe { from.cast::<[f32; COUNT]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, value: [f32; COUNT]) {
        // SAFETY: the caller vouches for the lanes.
        unsafe { to.cast::<[f32; COUNT]>().write_unaligned(value) }
    }
    #[inline(always)]
    unsafe fn splat(value: f32) -> [f32; COUNT] {
        [value; COUNT]
    }
    #[inline(always)]
    unsafe fn add(a: [f32; COUNT], b: [f32; COUNT]) -> [f32; COUNT] {
        each!(|lane| a[lane] + b[lane])
    }
    #[inline(always)]
    unsafe fn multiply(a: [f32; COUNT], b: [f32; COUNT]) -> [f32; COUNT] {
        each!(|lane| a[lane] * b[lane])
    }
    #[inline(always)]
    unsafe fn divide(a: [f32; COUNT], b: [f32; COUNT]) -> [f32; COUNT] {
        each!(|lane| a[lane] / b[lane])
    }
    #[inline(always)]
    unsafe fn fused(a: [f32; COUNT], b: [f32; COUNT], c: [f32; COUNT]) -> [f32; COUNT] {
        each!(|lane| a[lane] * b[lane] + c[lane])
    }
    #[inline(always)]
    unsafe fn larger(a: [f32; COUNT], b: [f32; COUNT]) -> [f32; COUNT] {
        each!(|lane| if a[lane] > b[lane] { a[lane] } else { b[lane] })
    }
    #[inline(always)]
    unsafe fn smaller(a: [f32; COUNT], b: [f32; COUNT]) -> [f32; COUNT] {
        each!(|lane| if a[lane] < b[lane] { a[lane] } else { b[lane] })
    }
    #[inline(always)]
    unsafe fn absolute(value: [f32; COUNT]) -> [f32; COUNT] {
        each!(|lane| value[lane].abs())
    }
    #[inline(always)]
    unsafe fn sum(value: [f32; COUNT]) -> f32 {
        (value[0] + value[1]) + (value[2] + value[3])
    }
    #[inline(always)]
    unsafe fn largest(value: [f32; COUNT]) -> f32 {
        value[0].max(value[1]).max(value[2]).max(value[3])
    }
}
