//! Owns the writing of arbitrary bytes as printable letters that byte-level vocabularies use.
//! Knows no vocabulary. Invariant: `decode` undoes `encode` for every sequence of bytes.

/// Bytes that stand for themselves; the others are numbered from 256 on, in order.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, 33..=126 | 161..=172 | 174..=255)
}

const LETTERS: [char; 256] = {
    let mut letters = ['\0'; 256];
    let mut byte = 0;
    let mut other = 256;
    while byte < 256 {
        let code = if is_plain(byte as u8) { byte as u32 } else { other };
        if !is_plain(byte as u8) {
            other += 1;
        }
        letters[byte] = match char::from_u32(code) {
            Some(letter) => letter,
            None => '\0',
        };
        byte += 1;
    }
    letters
};

const BYTES: [Option<u8>; 324] = {
    let mut bytes = [None; 324];
    let mut byte = 0;
    while byte < 256 {
        bytes[LETTERS[byte] as usize] = Some(byte as u8);
        byte += 1;
    }
    bytes
};

/// Writes `bytes` as letters into `out`, which is emptied first.
pub(super) fn encode(bytes: &[u8], out: &mut String) {
    out.clear();
    out.extend(bytes.iter().map(|&byte| LETTERS[byte as usize]));
}

/// Appends the bytes that `letters` stand for; what stands for none is kept as it is.
pub(super) fn decode(letters: &[u8], out: &mut Vec<u8>) {
    let Ok(text) = std::str::from_utf8(letters) else { return out.extend_from_slice(letters) };
    for letter in text.chars() {
        match BYTES.get(letter as usize).copied().flatten() {
            Some(byte) => out.push(byte),
            None => out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_byte_survives() {
        let all: Vec<u8> = (0..=255).collect();
        let (mut letters, mut back) = (String::new(), Vec::new());
        super::encode(&all, &mut letters);
        assert!(letters.starts_with('Ā') && letters.contains('Ġ'));
        super::decode(letters.as_bytes(), &mut back);
        assert_eq!(back, all);
    }
}
