//! Checks every instruction set this machine has against the plain meaning of each format.

use super::activations::Activations;
use super::attention::{Attention, PAGE, PageView, Scratch, key_place, value_place};
use super::multiply::Product;
use super::panel::Panel;
use super::{Kernels, all};
use crate::format::Format;

const FORMATS: [Format; 11] = [
    Format::F32,
    Format::F16,
    Format::Bf16,
    Format::Q4_0,
    Format::Q4_1,
    Format::Q5_0,
    Format::Q5_1,
    Format::Q8_0,
    Format::Q4K,
    Format::Q5K,
    Format::Q6K,
];

/// Numbers that look random and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn float(&mut self) -> f32 {
        self.next() as f32 / (1u64 << 30) as f32 - 1.0
    }

    /// A row of random weights whose scales are sane.
    fn row(&mut self, format: Format, columns: usize) -> Vec<u8> {
        let mut row = Vec::new();
        for _ in 0..columns / format.block() {
            let mut block: Vec<u8> = (0..format.block_bytes()).map(|_| self.next() as u8).collect();
            // Halves between 0.5 and 1: any sign, exponent 14.
            let half = |number: u64| ((number as u16 & 0x83ff) | 0x3800).to_le_bytes();
            let scales: &[usize] = match format {
                Format::F32 => {
                    block = self.float().to_le_bytes().to_vec();
                    &[]
                }
                Format::Bf16 => {
                    block = self.float().to_le_bytes()[2..].to_vec();
                    &[]
                }
                Format::F16 | Format::Q4_0 | Format::Q5_0 | Format::Q8_0 => &[0],
                Format::Q4_1 | Format::Q5_1 | Format::Q4K | Format::Q5K => &[0, 2],
                Format::Q6K => &[208],
            };
            for &place in scales {
                block[place..place + 2].copy_from_slice(&half(self.next()));
            }
            row.extend(block);
        }
        row
    }
}

/// What the product must be, given that activations are rounded to bytes for all but float weights.
fn expected(format: Format, weights: &[f32], x: &[f32]) -> f64 {
    let mut total = 0.0;
    for (weights, x) in weights.chunks(32).zip(x.chunks(32)) {
        let largest = x.iter().fold(0f32, |largest, x| largest.max(x.abs()));
        let (scale, inverse) = (largest / 127.0, if largest > 0.0 { 127.0 / largest } else { 0.0 });
        for (weight, x) in weights.iter().zip(x) {
            let x = if format.is_float() { *x } else { scale * (x * inverse).round_ties_even() };
            total += f64::from(*weight) * f64::from(x);
        }
    }
    total
}

fn check_product(kernels: &Kernels, format: Format, rows: usize, columns: usize, tokens: usize) {
    let mut numbers = Numbers(7);
    let stride = format.row_bytes(columns);
    let weights: Vec<u8> = (0..rows).flat_map(|_| numbers.row(format, columns)).collect();
    let plain: Vec<f32> = (0..tokens * columns).map(|_| numbers.float()).collect();
    let mut activations = Activations::default();
    activations.resize(tokens, columns);
    kernels.quantize(&plain, &mut activations);
    let mut out = vec![f32::NAN; tokens * rows];
    let product = Product {
        format,
        rows,
        columns,
        weights: &weights,
        next: &[],
        activations: &activations,
        plain: &plain,
        out: out.as_mut_ptr(),
        out_stride: rows,
    };
    let panels = rows.div_ceil(kernels.lanes);
    let mut panel = Panel::default();
    kernels.multiply(&product, 0..panels / 2, &mut panel);
    kernels.multiply(&product, panels / 2..panels, &mut panel);
    let mut row_weights = vec![0.0; columns];
    for row in 0..rows {
        format.expand(&weights[row * stride..][..stride], &mut row_weights);
        let size: f32 = row_weights.iter().map(|weight| weight.abs()).sum();
        for token in 0..tokens {
            let expected = expected(format, &row_weights, &plain[token * columns..][..columns]);
            let error = (f64::from(out[token * rows + row]) - expected).abs() / f64::from(size);
            let name = kernels.name;
            assert!(error < 1e-5, "{name} {format:?} row {row} token {token} of {tokens}: {error}");
        }
    }
}

#[test]
fn products_mean_what_the_formats_say() {
    for kernels in all() {
        for format in FORMATS {
            for tokens in [1, 2, 3, 12, 27] {
                check_product(kernels, format, 40, 256, tokens);
            }
            check_product(kernels, format, 17, 512, 4);
        }
    }
}

fn check_elementwise(kernels: &Kernels) {
    let mut numbers = Numbers(3);
    let x: Vec<f32> = (0..64).map(|_| numbers.float() * 30.0).collect();
    let weight: Vec<f32> = (0..64).map(|_| numbers.float()).collect();
    let mut out = vec![0.0; 64];
    kernels.normalize(&x, &weight, 1e-5, &mut out);
    let mean = x.iter().map(|x| f64::from(x * x)).sum::<f64>() / 64.0;
    for ((out, x), weight) in out.iter().zip(&x).zip(&weight) {
        let expected = f64::from(x * weight) / (mean + 1e-5).sqrt();
        assert!((f64::from(*out) - expected).abs() < 1e-5, "{}: {out} {expected}", kernels.name);
    }
    let mut gated = x.clone();
    kernels.gate(&mut gated, &weight);
    for ((gated, x), weight) in gated.iter().zip(&x).zip(&weight) {
        let (x, weight) = (f64::from(*x), f64::from(*weight));
        let expected = x / (1.0 + (-x).exp()) * weight;
        let error = (f64::from(*gated) - expected).abs();
        assert!(error < 1e-5 * (1.0 + x.abs()), "{}: {gated} {expected}", kernels.name);
    }
    kernels.accumulate(&mut out, &x);
    assert!(out.iter().all(|out| out.is_finite()));
}

#[test]
fn small_work_is_right() {
    for kernels in all() {
        check_elementwise(kernels);
    }
}

fn views<'a>(
    keys: &'a [i8],
    values: &'a [i8],
    key_scales: &'a [f32],
    value_scales: &'a [f32],
) -> Vec<PageView<'a>> {
    let length = keys.len() / key_scales.len() * PAGE;
    let bytes = keys.chunks_exact(length).zip(values.chunks_exact(length));
    let scales = key_scales.chunks_exact(PAGE).zip(value_scales.chunks_exact(PAGE));
    let view =
        |((keys, values), (key_scales, value_scales))| PageView { keys, key_scales, values, value_scales };
    bytes.zip(scales).map(view).collect()
}

/// One number of the pages, which `place` lays out.
fn read(
    pages: &[i8],
    position: usize,
    dimension: usize,
    head_size: usize,
    place: fn(usize, usize, usize) -> usize,
) -> f64 {
    f64::from(pages[position / PAGE * PAGE * head_size + place(position % PAGE, dimension, head_size)])
}

/// Attention of `tokens` tokens after `first` others, against the textbook.
fn check_attention(kernels: &Kernels, head_size: usize, group: usize, first: usize, tokens: usize) {
    let mut numbers = Numbers(11);
    let seen = first + tokens;
    let pages = seen.div_ceil(PAGE);
    let keys: Vec<i8> = (0..pages * PAGE * head_size).map(|_| numbers.next() as i8).collect();
    let values: Vec<i8> = (0..pages * PAGE * head_size).map(|_| numbers.next() as i8).collect();
    let scales: Vec<f32> = (0..pages * PAGE * 2).map(|_| numbers.float().abs() / 100.0).collect();
    let (key_scales, value_scales) = scales.split_at(pages * PAGE);
    let views = views(&keys, &values, key_scales, value_scales);
    let stride = (group + 1) * head_size;
    let queries: Vec<f32> = (0..tokens * stride).map(|_| numbers.float()).collect();
    let mut out = vec![0.0; tokens * stride];
    let job = Attention {
        pages: &views,
        first,
        head_size,
        group,
        offset: head_size,
        queries: &queries,
        out: out.as_mut_ptr(),
        stride,
    };
    kernels.attend(&job, 0..tokens, &mut Scratch::default());
    for row in 0..tokens * group {
        let (token, place) = (row / group, row / group * stride + head_size + row % group * head_size);
        let query = &queries[place..][..head_size];
        let score = |position: usize| {
            let key = (0..head_size).map(|dimension| read(&keys, position, dimension, head_size, key_place));
            let dot: f64 = query.iter().zip(key).map(|(query, key)| f64::from(*query) * key).sum();
            (dot * f64::from(key_scales[position]) / (head_size as f64).sqrt()).exp()
        };
        let weights: Vec<f64> = (0..=first + token).map(score).collect();
        let total: f64 = weights.iter().sum();
        for dimension in 0..head_size {
            let value = |(position, weight): (usize, &f64)| {
                let value = read(&values, position, dimension, head_size, value_place);
                weight / total * value * f64::from(value_scales[position])
            };
            let expected: f64 = weights.iter().enumerate().map(value).sum();
            let error = (f64::from(out[place + dimension]) - expected).abs();
            // Queries and weights are rounded to a 32,258th of the largest of them.
            assert!(error < 4e-5, "{} group {group} row {row}: {error}", kernels.name);
        }
    }
    assert!(out[..head_size].iter().all(|untouched| *untouched == 0.0));
}

#[test]
fn attention_sees_the_past_and_nothing_else() {
    for kernels in all() {
        check_attention(kernels, 64, 3, 0, 1);
        check_attention(kernels, 64, 3, 200, 8);
        check_attention(kernels, 80, 1, 127, 2);
        check_attention(kernels, 128, 4, 15, 5);
        check_attention(kernels, 16, 7, 300, 3);
    }
}
