//! Owns the vector operations in AVX2 with FMA and F16C, with or without the 256-bit VNNI.
//! Knows nothing about models. Invariant: only reached after the CPU said it has what the type names.

use std::arch::x86_64::*;

use super::lanes::Lanes;

/// AVX2; with `VNNI` also AVX-VNNI.
#[derive(Clone, Copy)]
pub(super) struct Avx2<const VNNI: bool>;

impl<const VNNI: bool> Lanes for Avx2<VNNI> {
    const COUNT: usize = 8;
    const SIGNED_BYTES: bool = !VNNI;
    type Int = __m256i;
    type Float = __m256;

    #[inline(always)]
    unsafe fn rows16(base: *const u8, stride: usize) -> [__m256i; 4] {
        unsafe {
            let a = pair(base, stride);
            let b = pair(base.add(stride), stride);
            let c = pair(base.add(2 * stride), stride);
            let d = pair(base.add(3 * stride), stride);
            let ab = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
            let cd = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
            [
                _mm256_unpacklo_epi64(ab.0, cd.0),
                _mm256_unpackhi_epi64(ab.0, cd.0),
                _mm256_unpacklo_epi64(ab.1, cd.1),
                _mm256_unpackhi_epi64(ab.1, cd.1),
            ]
        }
    }

    #[inline(always)]
    unsafe fn words(base: *const u8, stride: usize) -> __m256i {
        unsafe {
            let order = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let places = _mm256_mullo_epi32(order, _mm256_set1_epi32(stride as i32));
            _mm256_i32gather_epi32::<1>(base.cast(), places)
        }
    }

    #[inline(always)]
    unsafe fn load_words(from: *const u32) -> __m256i {
        unsafe { _mm256_loadu_si256(from.cast()) }
    }
    #[inline(always)]
    unsafe fn store_words(to: *mut u32, value: __m256i) {
        unsafe { _mm256_storeu_si256(to.cast(), value) }
    }
    #[inline(always)]
    unsafe fn splat_word(word: u32) -> __m256i {
        unsafe { _mm256_set1_epi32(word as i32) }
    }
    #[inline(always)]
    unsafe fn and(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_and_si256(a, b) }
    }
    #[inline(always)]
    unsafe fn or(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_or_si256(a, b) }
    }
    #[inline(always)]
    unsafe fn xor(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_xor_si256(a, b) }
    }
    #[inline(always)]
    unsafe fn shift_right<const N: u32>(value: __m256i) -> __m256i {
        unsafe { _mm256_srl_epi32(value, _mm_cvtsi32_si128(N as i32)) }
    }
    #[inline(always)]
    unsafe fn shift_left<const N: u32>(value: __m256i) -> __m256i {
        unsafe { _mm256_sll_epi32(value, _mm_cvtsi32_si128(N as i32)) }
    }
    #[inline(always)]
    unsafe fn multiply_words(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_mullo_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn dot<const WIDE: bool>(sum: __m256i, weights: __m256i, x: *const u32) -> __m256i {
        unsafe {
            let x = _mm256_set1_epi32(x.read_unaligned() as i32);
            if VNNI {
                return _mm256_dpbusd_avx_epi32(sum, weights, x);
            }
            // The product of an unsigned and a signed byte: a signed weight lends its sign to the other side.
            let pairs = if WIDE {
                _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(x, weights))
            } else {
                _mm256_maddubs_epi16(weights, x)
            };
            _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        }
    }

    #[inline(always)]
    unsafe fn to_float(value: __m256i) -> __m256 {
        unsafe { _mm256_cvtepi32_ps(value) }
    }
    #[inline(always)]
    unsafe fn half_to_float(value: __m256i) -> __m256 {
        unsafe {
            let low = _mm256_and_si256(value, _mm256_set1_epi32(0xffff));
            let packed = _mm256_permute4x64_epi64::<0b1000>(_mm256_packus_epi32(low, low));
            _mm256_cvtph_ps(_mm256_castsi256_si128(packed))
        }
    }
    #[inline(always)]
    unsafe fn round(value: __m256) -> __m256i {
        unsafe { _mm256_cvtps_epi32(value) }
    }
    #[inline(always)]
    unsafe fn bits_to_float(value: __m256i) -> __m256 {
        unsafe { _mm256_castsi256_ps(value) }
    }
    #[inline(always)]
    unsafe fn add_words(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_add_epi32(a, b) }
    }
    #[inline(always)]
    unsafe fn sum_words(value: __m256i) -> i32 {
        unsafe {
            let four = _mm_add_epi32(_mm256_castsi256_si128(value), _mm256_extracti128_si256::<1>(value));
            let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
            _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two)))
        }
    }
    #[inline(always)]
    unsafe fn store_bytes(to: *mut i8, value: __m256i) {
        unsafe {
            let words = _mm_packs_epi32(_mm256_castsi256_si128(value), _mm256_extracti128_si256::<1>(value));
            _mm_storel_epi64(to.cast(), _mm_packs_epi16(words, words));
        }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256 {
        unsafe { _mm256_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, value: __m256) {
        unsafe { _mm256_storeu_ps(to, value) }
    }
    #[inline(always)]
    unsafe fn splat(value: f32) -> __m256 {
        unsafe { _mm256_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn add(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_add_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn multiply(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_mul_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn divide(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_div_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn fused(a: __m256, b: __m256, c: __m256) -> __m256 {
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn larger(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_max_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn smaller(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_min_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn absolute(value: __m256) -> __m256 {
        unsafe { _mm256_andnot_ps(_mm256_set1_ps(-0.0), value) }
    }
    #[inline(always)]
    unsafe fn sum(value: __m256) -> f32 {
        unsafe {
            let four = _mm_add_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps::<1>(value));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }
    #[inline(always)]
    unsafe fn largest(value: __m256) -> f32 {
        unsafe {
            let four = _mm_max_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps::<1>(value));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
        }
    }
}

/// Sixteen bytes of rows 0 and 4, counted from `base`.
#[inline(always)]
unsafe fn pair(base: *const u8, stride: usize) -> __m256i {
    // SAFETY: the caller of `rows16` vouches for sixteen readable bytes in each of eight rows.
    unsafe {
        let low = _mm_loadu_si128(base.cast());
        let high = _mm_loadu_si128(base.add(4 * stride).cast());
        _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
    }
}
