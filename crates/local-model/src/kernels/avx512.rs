//! Owns the vector operations in AVX-512 with VNNI. Knows nothing about models.
//! Invariant: only reached after the CPU said it has `avx512f,avx512bw,avx512vl,avx512dq,avx512vnni`.

use std::arch::x86_64::*;

use super::lanes::Lanes;

#[derive(Clone, Copy)]
pub(super) struct Avx512;

impl Lanes for Avx512 {
    const COUNT: usize = 16;
    const SIGNED_BYTES: bool = false;
    type Int = __m512i;
    type Float = __m512;

    #[inline(always)]
    unsafe fn rows16(base: *const u8, stride: usize) -> [__m512i; 4] {
        unsafe {
            let a = quarter(base, stride);
            let b = quarter(base.add(stride), stride);
            let c = quarter(base.add(2 * stride), stride);
            let d = quarter(base.add(3 * stride), stride);
            let ab = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
            let cd = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
            [
                _mm512_unpacklo_epi64(ab.0, cd.0),
                _mm512_unpackhi_epi64(ab.0, cd.0),
                _mm512_unpacklo_epi64(ab.1, cd.1),
                _mm512_unpackhi_epi64(ab.1, cd.1),
            ]
        }
    }

    #[inline(always)]
    unsafe fn words(base: *const u8, stride: usize) -> __m512i {
        unsafe {
            let order = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            let places = _mm512_mullo_epi32(order, _mm512_set1_epi32(stride as i32));
            _mm512_i32gather_epi32::<1>(places, base.cast())
        }
    }

    #[inline(always)]
    unsafe fn load_words(from: *const u32) -> __m512i {
        unsafe { _mm512_loadu_si512(from.cast()) }
    }
    #[inline(always)]
    unsafe fn store_words(to: *mut u32, value: __m512i) {
        unsafe { _mm512_storeu_si512(to.cast(), value) }
    }
    #[inline(always)]
    unsafe fn splat_word(word: u32) -> __m512i {
        unsafe { _mm512_set1_epi32(word as i32) }
    }
    #[inline(always)]
    unsafe fn and(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_and_si512(a, b) }
    }
    #[inline(always)]
    unsafe fn or(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_or_si512(a, b) }
    }
    #[inline(always)]
    unsafe fn xor(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_xor_si512(a, b) }
    }
    #[inline(always)]
    unsafe fn shift_right<const N: u32>(value: __m512i) -> __m512i {
        unsafe { _mm512_srli_epi32::<N>(value) }
    }
    #[inline(always)]
    unsafe fn shift_left<const N: u32>(value: __m512i) -> __m512i {
        unsafe { _mm512_slli_epi32::<N>(value) }
    }
    #[inline(always)]
    unsafe fn multiply_words(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_mullo_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn dot<const WIDE: bool>(sum: __m512i, weights: __m512i, x: *const u32) -> __m512i {
        unsafe { _mm512_dpbusd_epi32(sum, weights, _mm512_set1_epi32(x.read_unaligned() as i32)) }
    }

    #[inline(always)]
    unsafe fn to_float(value: __m512i) -> __m512 {
        unsafe { _mm512_cvtepi32_ps(value) }
    }
    #[inline(always)]
    unsafe fn half_to_float(value: __m512i) -> __m512 {
        unsafe { _mm512_cvtph_ps(_mm512_cvtepi32_epi16(value)) }
    }
    #[inline(always)]
    unsafe fn round(value: __m512) -> __m512i {
        unsafe { _mm512_cvtps_epi32(value) }
    }
    #[inline(always)]
    unsafe fn bits_to_float(value: __m512i) -> __m512 {
        unsafe { _mm512_castsi512_ps(value) }
    }
    #[inline(always)]
    unsafe fn add_words(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_add_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn sum_words(value: __m512i) -> i32 {
        unsafe { _mm512_reduce_add_epi32(value) }
    }
    #[inline(always)]
    unsafe fn store_bytes(to: *mut i8, value: __m512i) {
        unsafe { _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(value)) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512 {
        unsafe { _mm512_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, value: __m512) {
        unsafe { _mm512_storeu_ps(to, value) }
    }
    #[inline(always)]
    unsafe fn splat(value: f32) -> __m512 {
        unsafe { _mm512_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn multiply(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn divide(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_div_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn fused(a: __m512, b: __m512, c: __m512) -> __m512 {
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn larger(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_max_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn smaller(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_min_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn absolute(value: __m512) -> __m512 {
        unsafe { _mm512_abs_ps(value) }
    }
    #[inline(always)]
    unsafe fn sum(value: __m512) -> f32 {
        unsafe { _mm512_reduce_add_ps(value) }
    }
    #[inline(always)]
    unsafe fn largest(value: __m512) -> f32 {
        unsafe { _mm512_reduce_max_ps(value) }
    }
}

/// Sixteen bytes of rows 0, 4, 8 and 12, counted from `base`.
#[inline(always)]
unsafe fn quarter(base: *const u8, stride: usize) -> __m512i {
    // SAFETY: the caller of `rows16` vouches for sixteen readable bytes in each of sixteen rows.
    unsafe {
        let row = |index: usize| _mm_loadu_si128(base.add(index * 4 * stride).cast());
        let low = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(row(0)), row(1));
        let high = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(row(2)), row(3));
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
    }
}
