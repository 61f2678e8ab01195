//! Owns bounds-checked reading of little-endian numbers and strings. Knows no key of GGUF.
//! Invariant: the position never passes the end of the bytes.

use std::ops::Range;

use crate::error::ModelError;

pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, position: 0 }
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], ModelError> {
        let range = self.skip(count)?;
        Ok(&self.bytes[range])
    }

    /// Passes over `count` bytes and says where they lie.
    pub(crate) fn skip(&mut self, count: usize) -> Result<Range<usize>, ModelError> {
        let end = self.position.checked_add(count).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or_else(|| ModelError::damaged("it ends in the middle of its directory"))?;
        let range = self.position..end;
        self.position = end;
        Ok(range)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ModelError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, ModelError> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ModelError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ModelError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, ModelError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A length-prefixed string, as the range of its bytes.
    pub(crate) fn string(&mut self) -> Result<Range<usize>, ModelError> {
        let length = self.u64()?;
        let length = usize::try_from(length).map_err(|_| ModelError::damaged("a string is too long"))?;
        self.skip(length)
    }

    pub(crate) fn name(&mut self, limit: usize) -> Result<String, ModelError> {
        let range = self.string()?;
        if range.len() > limit {
            return Err(ModelError::damaged("a name is too long"));
        }
        let name = std::str::from_utf8(&self.bytes[range]);
        Ok(name.map_err(|_| ModelError::damaged("a name is not UTF-8"))?.to_owned())
    }
}
