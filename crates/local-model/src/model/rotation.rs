//! Owns rotary position encoding: angles for a position, and turning a head by them.
//! Knows no layer. Invariant: the pairs of a head are those of its architecture: neighbors (0,1), (2,3), … in llama files,
//! a value and the one half a head further (0,n), (1,n+1), … in the others.

use super::architecture::Architecture;
use super::weights::vector;
use crate::error::ModelError;
use crate::gguf::Gguf;

/// The turning speed of each pair of a head.
pub(super) struct Rotation {
    speeds: Vec<f64>,
    neighbors: bool,
}

/// Cosine and sine of each pair, for some positions in a row.
#[derive(Default)]
pub(super) struct Angles {
    values: Vec<(f32, f32)>,
    pairs: usize,
    neighbors: bool,
}

impl Rotation {
    pub(super) fn read(
        file: &Gguf,
        architecture: Architecture,
        head_size: usize,
    ) -> Result<Rotation, ModelError> {
        let key = |key: &str| format!("{}.rope.{key}", architecture.name());
        let dimensions = file.unsigned(&key("dimension_count")).unwrap_or(head_size as u64) as usize;
        if dimensions == 0 || dimensions > head_size || !dimensions.is_multiple_of(2) {
            return Err(ModelError::damaged("its rotary dimensions are out of range"));
        }
        let base = file.real(&key("freq_base")).unwrap_or(10_000.0);
        if !(base.is_finite() && base >= 1.0) {
            return Err(ModelError::damaged("its rotary base is out of range"));
        }
        let stretch = match file.text(&key("scaling.type")) {
            None | Some("none") => 1.0,
            Some("linear") => file.real(&key("scaling.factor")).unwrap_or(1.0),
            Some(other) => return Err(ModelError::unsupported(format!("its rotary scaling is {other:?}"))),
        };
        let factors = match file.tensor("rope_freqs.weight") {
            Some(_) => vector(file, "rope_freqs.weight", dimensions / 2)?,
            None => vec![1.0; dimensions / 2],
        };
        let speed = |(pair, factor): (usize, f32)| {
            base.powf(-2.0 * pair as f64 / dimensions as f64) / stretch / f64::from(factor)
        };
        let speeds: Vec<f64> = factors.into_iter().enumerate().map(speed).collect();
        if speeds.iter().any(|speed| !speed.is_finite()) {
            return Err(ModelError::damaged("its rotary factors are out of range"));
        }
        Ok(Rotation { speeds, neighbors: architecture == Architecture::Llama })
    }

    pub(super) fn angles(&self, first: usize, count: usize, angles: &mut Angles) {
        angles.pairs = self.speeds.len();
        angles.neighbors = self.neighbors;
        angles.values.clear();
        for position in first..first + count {
            let turn = |speed: &f64| {
                let (sine, cosine) = (position as f64 * speed).sin_cos();
                (cosine as f32, sine as f32)
            };
            angles.values.extend(self.speeds.iter().map(turn));
        }
    }
}

impl Angles {
    /// Turns every head of a token's row; `token` counts from the first position.
    pub(super) fn turn(&self, token: usize, row: &mut [f32], head_size: usize) {
        let angles = &self.values[token * self.pairs..(token + 1) * self.pairs];
        let turned = |(first, second): (f32, f32), (cosine, sine): (f32, f32)| {
            (first * cosine - second * sine, first * sine + second * cosine)
        };
        for head in row.chunks_exact_mut(head_size) {
            if self.neighbors {
                for (pair, &angle) in head.chunks_exact_mut(2).zip(angles) {
                    (pair[0], pair[1]) = turned((pair[0], pair[1]), angle);
                }
                continue;
            }
            let (firsts, seconds) = head[..2 * self.pairs].split_at_mut(self.pairs);
            for ((first, second), &angle) in firsts.iter_mut().zip(seconds).zip(angles) {
                (*first, *second) = turned((*first, *second), angle);
            }
        }
    }
}
