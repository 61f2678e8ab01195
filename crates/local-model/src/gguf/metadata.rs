//! Owns the typed values of GGUF metadata. Knows no key by name.
//! Invariant: text and arrays stay in the file; a value holds only where.

use std::ops::Range;

use super::cursor::Cursor;
use crate::error::ModelError;

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Whole(u64),
    Negative,
    Real(f64),
    Flag(bool),
    Text(Range<usize>),
    Array(Array),
}

/// An array that was measured but not copied.
#[derive(Debug, Clone)]
pub(crate) struct Array {
    pub kind: u32,
    pub count: usize,
    pub data: Range<usize>,
}

const U8: u32 = 0;
const I8: u32 = 1;
const U16: u32 = 2;
const I16: u32 = 3;
const U32: u32 = 4;
const I32: u32 = 5;
const F32: u32 = 6;
const BOOL: u32 = 7;
const STRING: u32 = 8;
const ARRAY: u32 = 9;
const U64: u32 = 10;
const I64: u32 = 11;
const F64: u32 = 12;

impl Value {
    pub(crate) fn read(cursor: &mut Cursor) -> Result<Value, ModelError> {
        let kind = cursor.u32()?;
        Ok(match kind {
            U8 => Value::Whole(cursor.u8()?.into()),
            U16 => Value::Whole(cursor.u16()?.into()),
            U32 => Value::Whole(cursor.u32()?.into()),
            U64 => Value::Whole(cursor.u64()?),
            I8 => signed((cursor.u8()? as i8).into()),
            I16 => signed((cursor.u16()? as i16).into()),
            I32 => signed((cursor.u32()? as i32).into()),
            I64 => signed(cursor.u64()? as i64),
            F32 => Value::Real(f32::from_bits(cursor.u32()?).into()),
            F64 => Value::Real(f64::from_bits(cursor.u64()?)),
            BOOL => Value::Flag(cursor.u8()? != 0),
            STRING => Value::Text(cursor.string()?),
            ARRAY => Value::Array(Array::read(cursor)?),
            _ => return Err(ModelError::damaged(format!("a metadata value has the unknown type {kind}"))),
        })
    }

    pub(crate) fn as_unsigned(&self) -> Option<u64> {
        match self {
            Value::Whole(number) => Some(*number),
            Value::Negative | Value::Real(_) | Value::Flag(_) | Value::Text(_) | Value::Array(_) => None,
        }
    }

    pub(crate) fn real(&self) -> Option<f64> {
        match self {
            Value::Real(number) => Some(*number),
            Value::Whole(number) => Some(*number as f64),
            Value::Negative | Value::Flag(_) | Value::Text(_) | Value::Array(_) => None,
        }
    }
}

fn signed(number: i64) -> Value {
    u64::try_from(number).map_or(Value::Negative, Value::Whole)
}

impl Array {
    fn read(cursor: &mut Cursor) -> Result<Array, ModelError> {
        let kind = cursor.u32()?;
        let count = cursor.u64()?;
        let count = usize::try_from(count).map_err(|_| ModelError::damaged("an array is too long"))?;
        let start = cursor.position();
        if kind == STRING {
            for _ in 0..count {
                cursor.string()?;
            }
        } else {
            let width = width(kind)
                .ok_or_else(|| ModelError::damaged(format!("an array has the unknown item type {kind}")))?;
            let length =
                count.checked_mul(width).ok_or_else(|| ModelError::damaged("an array is too long"))?;
            cursor.skip(length)?;
        }
        Ok(Array { kind, count, data: start..cursor.position() })
    }

    /// Where each string of the array lies in the file.
    pub(crate) fn strings(&self, file: &[u8]) -> Result<Vec<Range<usize>>, ModelError> {
        if self.kind != STRING {
            return Err(ModelError::damaged("an array of strings holds something else"));
        }
        let mut cursor = Cursor::new(&file[self.data.clone()]);
        let start = self.data.start;
        let mut strings = Vec::with_capacity(self.count);
        for _ in 0..self.count {
            let range = cursor.string()?;
            strings.push(start + range.start..start + range.end);
        }
        Ok(strings)
    }

    /// The 32-bit integers of the array.
    pub(crate) fn integers(&self, file: &[u8]) -> Result<Vec<i32>, ModelError> {
        if self.kind != I32 && self.kind != U32 {
            return Err(ModelError::damaged("an array of integers holds something else"));
        }
        let words = file[self.data.clone()].chunks_exact(4);
        Ok(words.map(|word| i32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
    }
}

fn width(kind: u32) -> Option<usize> {
    Some(match kind {
        U8 | I8 | BOOL => 1,
        U16 | I16 => 2,
        U32 | I32 | F32 => 4,
        U64 | I64 | F64 => 8,
        _ => return None,
    })
}
