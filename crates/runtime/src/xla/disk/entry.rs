//! One file: a header, and what the plugin made.
//!
//! Layout, integers little-endian: magic, version (u32), key, digest of everything after it, how
//! many milliseconds compiling took (u64), the plugin's bytes.

use std::time::Duration;

use super::Key;

const MAGIC: &[u8; 8] = b"nxlaexec";

/// The version of the layout, and of what a key is made of.
pub(super) const VERSION: u32 = 1;

/// How long the header is.
pub(super) const HEADER: usize = 8 + 4 + 32 + 32 + 8;

/// The bytes of a file.
pub(super) fn encode(key: &Key, payload: &[u8], took: Duration) -> Vec<u8> {
    let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).to_le_bytes();
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(key.0);
    bytes.extend(digest(&took, payload));
    bytes.extend(took);
    bytes.extend(payload);
    bytes
}

/// The plugin's bytes, or what is wrong with the file.
pub(super) fn decode(key: &Key, mut bytes: Vec<u8>) -> Result<Vec<u8>, &'static str> {
    let Header { key: found, digest: told, took } = header(&bytes)?;
    if found != *key {
        return Err("it belongs to another program");
    }
    if digest(&took.to_le_bytes(), &bytes[HEADER..]) != told {
        return Err("it is damaged");
    }
    bytes.drain(..HEADER);
    Ok(bytes)
}

/// How long compiling took, in milliseconds, as the beginning of a file tells.
pub(super) fn compile_time(beginning: &[u8]) -> Option<u64> {
    header(beginning).ok().map(|header| header.took)
}

struct Header {
    key: Key,
    digest: [u8; 32],
    took: u64,
}

fn header(bytes: &[u8]) -> Result<Header, &'static str> {
    let short = "it ends early";
    let rest = bytes.strip_prefix(MAGIC).ok_or("it is no executable of this cache")?;
    let (version, rest) = rest.split_first_chunk().ok_or(short)?;
    if u32::from_le_bytes(*version) != VERSION {
        return Err("it has another format version");
    }
    let (key, rest) = rest.split_first_chunk().ok_or(short)?;
    let (digest, rest) = rest.split_first_chunk().ok_or(short)?;
    let took = rest.first_chunk().ok_or(short)?;
    Ok(Header { key: Key(*key), digest: *digest, took: u64::from_le_bytes(*took) })
}

fn digest(took: &[u8; 8], payload: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(took);
    hasher.update(payload);
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        let key = Key([7; 32]);
        let bytes = encode(&key, b"code", Duration::from_millis(1234));
        assert_eq!(compile_time(&bytes), Some(1234));
        assert_eq!(decode(&key, bytes.clone()).as_deref(), Ok(&b"code"[..]));
        assert!(decode(&Key([8; 32]), bytes.clone()).is_err());
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1;
            assert!(decode(&key, damaged).is_err(), "byte {place}");
            assert!(decode(&key, bytes[..place].to_vec()).is_err(), "cut at {place}");
        }
        let longer = [&bytes[..], b"more"].concat();
        assert_eq!(decode(&key, longer), Err("it is damaged"));
    }
}
