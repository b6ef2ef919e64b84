//! The format of one file: a header, then the executable as the plugin serialized it.
//!
//! Layout, with little-endian integers: magic, version (u32), key of the program, keyed digest of
//! that key and of everything after the digest, compile time in milliseconds (u64), executable.
//!
//! The digest is keyed with a secret of the folder, so that only a process that can read the secret
//! can write a file that is accepted, and a file cannot be moved to the name of another program.

use std::time::Duration;

use super::Key;

const MAGIC: &[u8; 8] = b"nxlaexec";

/// The version of the layout and of the keys.
pub(super) const VERSION: u32 = 2;

/// The length of the header in bytes.
pub(super) const HEADER: usize = 8 + 4 + 32 + 32 + 8;

/// The secret of a folder.
pub(super) type Secret = [u8; 32];

/// Returns the bytes of a file.
pub(super) fn encode(secret: &Secret, key: &Key, payload: &[u8], took: Duration) -> Vec<u8> {
    let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).to_le_bytes();
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(key.0);
    bytes.extend(digest(secret, key, &took, payload).as_bytes());
    bytes.extend(took);
    bytes.extend(payload);
    bytes
}

/// Returns the executable in a file, or why the file is not accepted.
pub(super) fn decode(
    secret: &Secret,
    key: &Key,
    mut bytes: Vec<u8>,
) -> Result<Vec<u8>, &'static str> {
    let header = header(&bytes)?;
    if header.key != *key {
        return Err("the file belongs to another program");
    }
    // The comparison of `blake3::Hash` takes constant time.
    if digest(secret, key, &header.took.to_le_bytes(), &bytes[HEADER..]) != header.digest {
        return Err("the file is damaged, or was written without the secret of its folder");
    }
    bytes.drain(..HEADER);
    Ok(bytes)
}

/// Returns the compile time in milliseconds that the first bytes of a file record.
pub(super) fn compile_time(beginning: &[u8]) -> Option<u64> {
    header(beginning).ok().map(|header| header.took)
}

struct Header {
    key: Key,
    digest: [u8; 32],
    took: u64,
}

fn header(bytes: &[u8]) -> Result<Header, &'static str> {
    let short = "the file ends inside its header";
    let rest = bytes.strip_prefix(MAGIC).ok_or("the file is not an executable of this cache")?;
    let (version, rest) = rest.split_first_chunk().ok_or(short)?;
    if u32::from_le_bytes(*version) != VERSION {
        return Err("the file has another format version");
    }
    let (key, rest) = rest.split_first_chunk().ok_or(short)?;
    let (digest, rest) = rest.split_first_chunk().ok_or(short)?;
    let took = rest.first_chunk().ok_or(short)?;
    Ok(Header { key: Key(*key), digest: *digest, took: u64::from_le_bytes(*took) })
}

fn digest(secret: &Secret, key: &Key, took: &[u8; 8], payload: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(secret);
    hasher.update(&key.0);
    hasher.update(took);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modified_or_foreign_entries_are_rejected() {
        let (secret, key) = ([3; 32], Key([7; 32]));
        let bytes = encode(&secret, &key, b"code", Duration::from_millis(1234));
        assert_eq!(compile_time(&bytes), Some(1234));
        assert_eq!(decode(&secret, &key, bytes.clone()).as_deref(), Ok(&b"code"[..]));
        assert!(decode(&secret, &Key([8; 32]), bytes.clone()).is_err());
        assert!(decode(&[4; 32], &key, bytes.clone()).is_err());
        // A header that names another program needs another digest.
        let mut renamed = bytes.clone();
        renamed[12..44].copy_from_slice(&[8; 32]);
        assert!(decode(&secret, &Key([8; 32]), renamed).unwrap_err().contains("secret"));
        for index in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[index] ^= 1;
            assert!(decode(&secret, &key, damaged).is_err(), "byte {index}");
            assert!(decode(&secret, &key, bytes[..index].to_vec()).is_err(), "cut at {index}");
        }
        let longer = [&bytes[..], b"more"].concat();
        assert!(decode(&secret, &key, longer).unwrap_err().contains("damaged"));
    }
}
