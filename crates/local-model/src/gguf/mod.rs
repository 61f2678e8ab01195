//! Owns the GGUF container: metadata and the place of each tensor, as ranges into the bytes of the file.
//! Must not know what a model does with them. Invariant: every range handed out lies inside the file, and
//! nothing is allocated that is not paid for by bytes really present.

mod cursor;
mod metadata;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use cursor::Cursor;
pub(crate) use metadata::{Array, Value};

use crate::error::ModelError;
use crate::format::Format;

/// The bytes of a model file: a memory map, or a buffer in tests.
pub(crate) type Source = Arc<dyn AsRef<[u8]> + Send + Sync>;

const MAGIC: &[u8] = b"GGUF";
const DEFAULT_ALIGNMENT: u64 = 32;
/// A longer name is a sign of damage, not of a model.
const NAME_LIMIT: usize = 1 << 10;

/// A parsed GGUF file, still lying where it was mapped.
pub(crate) struct Gguf {
    source: Source,
    metadata: HashMap<String, Value>,
    tensors: HashMap<String, Tensor>,
}

/// One tensor: `columns` is the fast dimension (a row is contiguous), `rows` the product of the others.
#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    pub format: Format,
    pub columns: usize,
    pub rows: usize,
    pub data: Range<usize>,
}

impl Gguf {
    /// Reads the directory of the file; tensor data is not touched.
    pub(crate) fn parse(source: Source) -> Result<Gguf, ModelError> {
        let (metadata, tensors) = read(source.as_ref().as_ref())?;
        Ok(Gguf { source, metadata, tensors })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.source.as_ref().as_ref()
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        self.metadata.get(key)
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.value(key)? {
            Value::Text(range) => std::str::from_utf8(self.bytes().get(range.clone())?).ok(),
            Value::Whole(_) | Value::Negative | Value::Real(_) | Value::Flag(_) | Value::Array(_) => None,
        }
    }

    pub(crate) fn unsigned(&self, key: &str) -> Option<u64> {
        self.value(key).and_then(Value::as_unsigned)
    }

    pub(crate) fn real(&self, key: &str) -> Option<f64> {
        self.value(key).and_then(Value::real)
    }

    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        match self.value(key)? {
            Value::Flag(flag) => Some(*flag),
            Value::Whole(_) | Value::Negative | Value::Real(_) | Value::Text(_) | Value::Array(_) => None,
        }
    }

    pub(crate) fn array(&self, key: &str) -> Option<&Array> {
        match self.value(key)? {
            Value::Array(array) => Some(array),
            Value::Whole(_) | Value::Negative | Value::Real(_) | Value::Flag(_) | Value::Text(_) => None,
        }
    }

    /// The strings of an array of strings, as ranges into the file.
    pub(crate) fn strings(&self, key: &str) -> Result<Vec<Range<usize>>, ModelError> {
        let missing = || ModelError::unsupported(format!("it carries no `{key}`"));
        self.array(key).ok_or_else(missing)?.strings(self.bytes())
    }

    pub(crate) fn tensor_names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    pub(crate) fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(name)
    }
}

type Directory = (HashMap<String, Value>, HashMap<String, Tensor>);

fn read(bytes: &[u8]) -> Result<Directory, ModelError> {
    let mut cursor = Cursor::new(bytes);
    if cursor.take(MAGIC.len()).ok() != Some(MAGIC) {
        return Err(ModelError::NotGguf("it does not begin with the letters GGUF".into()));
    }
    let version = cursor.u32()?;
    if !(2..=3).contains(&version) {
        return Err(ModelError::unsupported(format!("its GGUF version is {version}, and 2 and 3 are known")));
    }
    let tensor_count = cursor.u64()?;
    let value_count = cursor.u64()?;
    let mut metadata = HashMap::new();
    for _ in 0..value_count {
        let key = cursor.name(NAME_LIMIT)?;
        let value = Value::read(&mut cursor)?;
        if metadata.insert(key, value).is_some() {
            return Err(ModelError::damaged("it has a metadata key twice"));
        }
    }
    let mut entries = Vec::new();
    for _ in 0..tensor_count {
        entries.push(TensorEntry::read(&mut cursor)?);
    }
    let alignment =
        metadata.get("general.alignment").and_then(Value::as_unsigned).unwrap_or(DEFAULT_ALIGNMENT);
    if !alignment.is_power_of_two() || alignment > 1 << 16 {
        return Err(ModelError::damaged(format!("its alignment is {alignment}")));
    }
    let start = (cursor.position() as u64).next_multiple_of(alignment);
    let mut tensors = HashMap::with_capacity(entries.len());
    for entry in entries {
        let tensor = entry.place(start, alignment, bytes.len())?;
        if tensors.insert(entry.name, tensor).is_some() {
            return Err(ModelError::damaged("it has a tensor twice"));
        }
    }
    Ok((metadata, tensors))
}

/// A tensor as the directory states it, before its place is checked.
struct TensorEntry {
    name: String,
    shape: Vec<u64>,
    kind: u32,
    offset: u64,
}

impl TensorEntry {
    fn read(cursor: &mut Cursor) -> Result<TensorEntry, ModelError> {
        let name = cursor.name(NAME_LIMIT)?;
        let dimensions = cursor.u32()?;
        if !(1..=4).contains(&dimensions) {
            return Err(ModelError::damaged(format!("tensor {name} has {dimensions} dimensions")));
        }
        let mut shape = Vec::with_capacity(dimensions as usize);
        for _ in 0..dimensions {
            shape.push(cursor.u64()?);
        }
        Ok(TensorEntry { name, shape, kind: cursor.u32()?, offset: cursor.u64()? })
    }

    fn place(&self, start: u64, alignment: u64, file: usize) -> Result<Tensor, ModelError> {
        let name = &self.name;
        let format = Format::from_code(self.kind).ok_or_else(|| {
            let known = Format::NAMES;
            ModelError::unsupported(format!("tensor {name} has the format {}; supported: {known}", self.kind))
        })?;
        let damaged = |what: &str| ModelError::damaged(format!("tensor {name} {what}"));
        let columns = usize::try_from(self.shape[0]).map_err(|_| damaged("is too wide"))?;
        let rows = self.shape[1..]
            .iter()
            .try_fold(1usize, |rows, &size| rows.checked_mul(usize::try_from(size).ok()?))
            .ok_or_else(|| damaged("is too large"))?;
        if columns == 0 || rows == 0 || !columns.is_multiple_of(format.block()) {
            return Err(damaged("has a shape its format does not allow"));
        }
        let length = (columns / format.block()).checked_mul(format.block_bytes());
        let length = length.and_then(|row| row.checked_mul(rows)).ok_or_else(|| damaged("is too large"))?;
        if !self.offset.is_multiple_of(alignment) {
            return Err(damaged("is not aligned"));
        }
        let begin = start.checked_add(self.offset).and_then(|begin| usize::try_from(begin).ok());
        let begin = begin.ok_or_else(|| damaged("lies outside the file"))?;
        let end = begin.checked_add(length).filter(|&end| end <= file);
        let end = end.ok_or_else(|| damaged("reaches beyond the end of the file"))?;
        Ok(Tensor { format, columns, rows, data: begin..end })
    }
}
