//! Owns the arithmetic: one set of kernels, compiled for each instruction set and chosen at run time.
//! Must not know models, tokens or files. Invariant: a `Kernels` table exists only for instructions this CPU
//! said it has, so calling through one is sound.

// Loops of constant length over arrays of vectors are what the compiler turns into registers.
#![allow(clippy::needless_range_loop)]

pub(crate) mod activations;
pub(crate) mod attention;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod elementwise;
mod lanes;
pub(crate) mod multiply;
#[cfg(target_arch = "aarch64")]
mod neon;
pub(crate) mod panel;
mod portable;
mod table;
#[cfg(test)]
mod tests;

#[cfg(test)]
use table::all;
pub(crate) use table::{Kernels, best};
