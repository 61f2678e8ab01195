//! Owns reading a weight of the file with the size that it must have.

use std::ops::Range;

use crate::error::ModelError;
use crate::format::Format;
use crate::gguf::{Gguf, Tensor};

/// A weight matrix and where it lies.
#[derive(Clone)]
pub(super) struct Matrix {
    pub(super) format: Format,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) data: Range<usize>,
}

fn tensor<'a>(file: &'a Gguf, name: &str, columns: usize, rows: usize) -> Result<&'a Tensor, ModelError> {
    let tensor = file.tensor(name).ok_or_else(|| ModelError::damaged(format!("tensor {name} is missing")))?;
    if (tensor.columns, tensor.rows) != (columns, rows) {
        let shape = format!("{} x {}", tensor.columns, tensor.rows);
        return Err(ModelError::damaged(format!("tensor {name} is {shape}, expected {columns} x {rows}")));
    }
    Ok(tensor)
}

pub(super) fn matrix(file: &Gguf, name: &str, columns: usize, rows: usize) -> Result<Matrix, ModelError> {
    let tensor = tensor(file, name, columns, rows)?;
    Ok(Matrix { format: tensor.format, rows, columns, data: tensor.data.clone() })
}

pub(super) fn vector(file: &Gguf, name: &str, length: usize) -> Result<Vec<f32>, ModelError> {
    let tensor = tensor(file, name, length, 1)?;
    let mut vector = vec![0.0; length];
    tensor.format.expand(&file.bytes()[tensor.data.clone()], &mut vector);
    Ok(vector)
}
