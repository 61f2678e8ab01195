//! Owns rotary position encoding: angles for a position, and turning a head by them.
//! Knows no layer. Invariant: pairs are neighbors (0,1), (2,3), … as llama-architecture files order them.

use super::vector;
use crate::error::ModelError;
use crate::gguf::Gguf;

/// The turning speed of each pair of a head.
pub(super) struct Rotation {
    speeds: Vec<f64>,
}

/// Cosine and sine of each pair, for some positions in a row.
#[derive(Default)]
pub(super) struct Angles {
    values: Vec<(f32, f32)>,
    pairs: usize,
}

impl Rotation {
    pub(super) fn read(file: &Gguf, head_size: usize) -> Result<Rotation, ModelError> {
        let dimensions = file.unsigned("llama.rope.dimension_count").unwrap_or(head_size as u64) as usize;
        if dimensions == 0 || dimensions > head_size || !dimensions.is_multiple_of(2) {
            return Err(ModelError::damaged("its rotary dimensions are out of range"));
        }
        let base = file.real("llama.rope.freq_base").unwrap_or(10_000.0);
        if !(base.is_finite() && base >= 1.0) {
            return Err(ModelError::damaged("its rotary base is out of range"));
        }
        let stretch = match file.text("llama.rope.scaling.type") {
            None | Some("none") => 1.0,
            Some("linear") => file.real("llama.rope.scaling.factor").unwrap_or(1.0),
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
        Ok(Rotation { speeds })
    }

    pub(super) fn angles(&self, first: usize, count: usize, angles: &mut Angles) {
        angles.pairs = self.speeds.len();
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
        for head in row.chunks_exact_mut(head_size) {
            for (pair, &(cosine, sine)) in head.chunks_exact_mut(2).zip(angles) {
                let (first, second) = (pair[0], pair[1]);
                pair[0] = first * cosine - second * sine;
                pair[1] = first * sine + second * cosine;
            }
        }
    }
}
