//! Owns the few vector operations every kernel is written in. Knows no instruction set and no model.
//! Invariant: all implementations give the same integers; floats may differ in the last bits.

/// A set of vector instructions. `COUNT` lanes hold one number of as many rows, keys or columns.
///
/// Every method is `unsafe` for two reasons only: the instructions must exist on this CPU (the wrappers in
/// `table.rs` are chosen after asking it), and pointers must be good for the lanes read or written.
pub(crate) trait Lanes: Copy {
    const COUNT: usize;
    /// Whether eight-bit weights stay signed. Otherwise they are stored plus 128, which `panel.rs` undoes.
    const SIGNED_BYTES: bool;
    type Int: Copy;
    type Float: Copy;

    /// Sixteen bytes from each of `COUNT` rows, turned so that vector `i` holds word `i` of every row.
    unsafe fn rows16(base: *const u8, stride: usize) -> [Self::Int; 4];
    /// Asks for the cache line at `place`, which need not be readable.
    #[inline(always)]
    unsafe fn prefetch(place: *const u8) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a hint that never faults, in the baseline of this architecture.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(place.cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = place;
    }
    /// The unaligned word at the start of each of `COUNT` rows.
    unsafe fn words(base: *const u8, stride: usize) -> Self::Int;
    unsafe fn load_words(from: *const u32) -> Self::Int;
    unsafe fn store_words(to: *mut u32, value: Self::Int);
    unsafe fn splat_word(word: u32) -> Self::Int;
    unsafe fn and(a: Self::Int, b: Self::Int) -> Self::Int;
    unsafe fn or(a: Self::Int, b: Self::Int) -> Self::Int;
    unsafe fn xor(a: Self::Int, b: Self::Int) -> Self::Int;
    unsafe fn shift_right<const N: u32>(value: Self::Int) -> Self::Int;
    unsafe fn shift_left<const N: u32>(value: Self::Int) -> Self::Int;
    unsafe fn multiply_words(a: Self::Int, b: Self::Int) -> Self::Int;
    /// Adds, in each lane, the products of four weight bytes with the four signed bytes at `x`.
    /// `WIDE` weights use all eight bits (see `SIGNED_BYTES`); others are below 128.
    unsafe fn dot<const WIDE: bool>(sum: Self::Int, weights: Self::Int, x: *const u32) -> Self::Int;

    unsafe fn to_float(value: Self::Int) -> Self::Float;
    /// The low sixteen bits of each lane, read as a half-precision number.
    unsafe fn half_to_float(value: Self::Int) -> Self::Float;
    /// Rounds to the nearest integer.
    unsafe fn round(value: Self::Float) -> Self::Int;
    unsafe fn bits_to_float(value: Self::Int) -> Self::Float;
    unsafe fn add_words(a: Self::Int, b: Self::Int) -> Self::Int;
    unsafe fn sum_words(value: Self::Int) -> i32;
    /// Stores the low byte of each lane.
    unsafe fn store_bytes(to: *mut i8, value: Self::Int);

    unsafe fn load(from: *const f32) -> Self::Float;
    unsafe fn store(to: *mut f32, value: Self::Float);
    unsafe fn splat(value: f32) -> Self::Float;
    unsafe fn add(a: Self::Float, b: Self::Float) -> Self::Float;
    unsafe fn multiply(a: Self::Float, b: Self::Float) -> Self::Float;
    unsafe fn divide(a: Self::Float, b: Self::Float) -> Self::Float;
    /// `a * b + c`.
    unsafe fn fused(a: Self::Float, b: Self::Float, c: Self::Float) -> Self::Float;
    unsafe fn larger(a: Self::Float, b: Self::Float) -> Self::Float;
    unsafe fn smaller(a: Self::Float, b: Self::Float) -> Self::Float;
    unsafe fn absolute(value: Self::Float) -> Self::Float;
    unsafe fn sum(value: Self::Float) -> f32;
    unsafe fn largest(value: Self::Float) -> f32;
}
