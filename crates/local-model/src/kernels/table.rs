//! Owns the choice of kernels: a table of functions for each instruction set, and the question to the CPU.
//! Knows the signatures of the kernels, not what they do.
//! Invariant: `all` lists only tables this CPU can run; the wrappers below are reached through it alone.

use std::ops::Range;

use super::activations::{self, Activations};
use super::attention::{self, Attention, Scratch};
use super::elementwise;
use super::multiply::{self, Product};
use super::panel::Panel;
use super::portable::Portable;

/// The kernels of one instruction set.
pub(crate) struct Kernels {
    pub name: &'static str,
    /// Rows of a panel.
    pub lanes: usize,
    /// Tokens a block may hold, widest first.
    pub widths: &'static [usize],
    multiply: unsafe fn(&Product, Range<usize>, &mut Panel),
    quantize: unsafe fn(&[f32], &mut Activations, usize, usize, usize),
    normalize: unsafe fn(&[f32], &[f32], f32, &mut [f32]),
    gate: unsafe fn(&mut [f32], &[f32]),
    accumulate: unsafe fn(&mut [f32], &[f32]),
    attend: unsafe fn(&Attention, Range<usize>, &mut Scratch),
}

impl Kernels {
    /// Computes the rows of `panels`.
    pub(crate) fn multiply(&self, product: &Product, panels: Range<usize>, panel: &mut Panel) {
        let row = product.format.row_bytes(product.columns);
        assert!(product.weights.len() >= row * product.rows && product.rows >= self.lanes);
        assert!(product.columns.is_multiple_of(32) && product.activations.columns == product.columns);
        assert!(product.plain.len() >= product.activations.tokens * product.columns);
        assert!(panels.end * self.lanes < product.rows + self.lanes);
        // SAFETY: sizes are checked above; the instructions exist (see the invariant).
        unsafe { (self.multiply)(product, panels, panel) }
    }

    /// Quantizes as many rows as `to` has tokens.
    pub(crate) fn quantize(&self, rows: &[f32], to: &mut Activations) {
        assert!(rows.len() >= to.tokens * to.columns && to.columns.is_multiple_of(activations::GROUP));
        let columns = to.columns;
        for (first, width) in activations::blocks(to.tokens, self.widths) {
            for slot in 0..width {
                let row = &rows[(first + slot) * columns..][..columns];
                // SAFETY: the block lies inside `to`; the instructions exist.
                unsafe { (self.quantize)(row, to, first, width, slot) }
            }
        }
    }

    pub(crate) fn normalize(&self, x: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) {
        assert!(x.len().is_multiple_of(16) && x.len() == weight.len() && x.len() == out.len());
        // SAFETY: lengths are checked above; the instructions exist.
        unsafe { (self.normalize)(x, weight, epsilon, out) }
    }

    pub(crate) fn gate(&self, gate: &mut [f32], up: &[f32]) {
        assert!(gate.len().is_multiple_of(16) && gate.len() == up.len());
        // SAFETY: lengths are checked above; the instructions exist.
        unsafe { (self.gate)(gate, up) }
    }

    pub(crate) fn accumulate(&self, to: &mut [f32], from: &[f32]) {
        assert!(to.len().is_multiple_of(16) && to.len() == from.len());
        // SAFETY: lengths are checked above; the instructions exist.
        unsafe { (self.accumulate)(to, from) }
    }

    pub(crate) fn attend(&self, job: &Attention, tokens: Range<usize>, scratch: &mut Scratch) {
        assert!(job.pages.len() * attention::PAGE >= job.first + tokens.end);
        assert!(job.head_size.is_multiple_of(16) && !tokens.is_empty());
        for page in job.pages {
            assert!(
                page.keys.len() == attention::PAGE * job.head_size && page.values.len() == page.keys.len()
            );
            assert!(page.key_scales.len() == attention::PAGE && page.value_scales.len() == attention::PAGE);
        }
        // SAFETY: sizes are checked above and `out` is as long as `queries`; the instructions exist.
        unsafe { (self.attend)(job, tokens, scratch) }
    }
}

macro_rules! table {
    ($module:ident, $lanes:ty, $name:literal, $widths:expr, $wide:literal $(, $feature:literal)?) => {
        mod $module {
            use super::*;
            const WIDTHS: &[usize] = &$widths;

            $(#[target_feature(enable = $feature)])?
            unsafe fn multiply(product: &Product, panels: Range<usize>, panel: &mut Panel) {
                unsafe { multiply::multiply::<$lanes>(product, panels, panel, WIDTHS) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn quantize(row: &[f32], to: &mut Activations, first: usize, width: usize, slot: usize) {
                unsafe { activations::quantize::<$lanes>(row, to, first, width, slot) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn normalize(x: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) {
                unsafe { elementwise::normalize::<$lanes>(x, weight, epsilon, out) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn gate(gate: &mut [f32], up: &[f32]) {
                unsafe { elementwise::gate::<$lanes>(gate, up) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn accumulate(to: &mut [f32], from: &[f32]) {
                unsafe { elementwise::accumulate::<$lanes>(to, from) }
            }
            $(#[target_feature(enable = $feature)])?
            unsafe fn attend(job: &Attention, tokens: Range<usize>, scratch: &mut Scratch) {
                unsafe { attention::attend::<$lanes, $wide>(job, tokens, scratch) }
            }

            pub(super) static TABLE: Kernels = Kernels {
                name: $name,
                lanes: <$lanes as crate::kernels::lanes::Lanes>::COUNT,
                widths: WIDTHS,
                multiply,
                quantize,
                normalize,
                gate,
                accumulate,
                attend,
            };
        }
    };
}

table!(portable, Portable, "portable", [4, 2, 1], false);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::avx2::Avx2;
    use super::super::avx512::Avx512;
    use super::*;

    table!(
        avx512,
        Avx512,
        "avx512-vnni",
        [12, 8, 4, 2, 1],
        true,
        "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c"
    );
    table!(avx_vnni, Avx2<true>, "avx-vnni", [4, 2, 1], false, "avx2,fma,f16c,avxvnni");
    table!(avx2, Avx2<false>, "avx2", [4, 2, 1], false, "avx2,fma,f16c");

    pub(super) fn tables() -> Vec<&'static Kernels> {
        let mut tables = Vec::new();
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        if avx2
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vnni")
        {
            tables.push(&avx512::TABLE);
        }
        if avx2 && is_x86_feature_detected!("avxvnni") {
            tables.push(&avx_vnni::TABLE);
        }
        if avx2 {
            tables.push(&avx2::TABLE);
        }
        tables
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::super::neon::Neon;
    use super::*;

    table!(neon_dot, Neon<true>, "neon-dotprod", [8, 4, 2, 1], true, "neon,dotprod");
    table!(neon, Neon<false>, "neon", [4, 2, 1], true, "neon");

    pub(super) fn tables() -> Vec<&'static Kernels> {
        let mut tables = Vec::new();
        if std::arch::is_aarch64_feature_detected!("dotprod") {
            tables.push(&neon_dot::TABLE);
        }
        if std::arch::is_aarch64_feature_detected!("neon") {
            tables.push(&neon::TABLE);
        }
        tables
    }
}

/// Every table this CPU can run, best first; the portable one is always last.
pub(super) fn all() -> Vec<&'static Kernels> {
    #[cfg(target_arch = "x86_64")]
    let mut tables = x86::tables();
    #[cfg(target_arch = "aarch64")]
    let mut tables = arm::tables();
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let mut tables: Vec<&'static Kernels> = Vec::new();
    tables.push(&portable::TABLE);
    tables
}

/// The best table for this CPU.
pub(crate) fn best() -> &'static Kernels {
    all()[0]
}
