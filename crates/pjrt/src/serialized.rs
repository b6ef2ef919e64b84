//! The envelope around a serialized executable.
//!
//! A plugin accepts executables of another XLA version without complaint and can then compute
//! wrong results, so the bytes contain the fingerprint of their compiler. They also contain properties
//! of the StableHLO module that the plugin cannot return later.
//!
//! Layout, integers little-endian: magic, format version (u32), length of the fingerprint (u32),
//! fingerprint, number of arguments plus one or 0 if unknown (u64), whether host functions are
//! called (u8), the plugin's bytes.

use crate::error::Error;

const MAGIC: &[u8; 8] = b"nxlapjrt";
const VERSION: u32 = 1;

/// Facts that the module of a program declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModuleFacts {
    /// `None` for a module without a plain `@main`; the plugin checks the number too.
    pub(crate) num_args: Option<usize>,
    /// True if it calls host functions.
    pub(crate) calls_host: bool,
}

/// Wraps the plugin's bytes.
pub(crate) fn wrap(fingerprint: &str, facts: ModuleFacts, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(25 + fingerprint.len() + payload.len());
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((fingerprint.len() as u32).to_le_bytes());
    bytes.extend(fingerprint.as_bytes());
    bytes.extend(facts.num_args.map_or(0, |count| count as u64 + 1).to_le_bytes());
    bytes.push(u8::from(facts.calls_host));
    bytes.extend(payload);
    bytes
}

/// Checks and removes the envelope.
///
/// # Errors
/// Returns [`Error::SerializedDamaged`] or [`Error::SerializedElsewhere`].
pub(crate) fn unwrap<'a>(
    fingerprint: &str,
    bytes: &'a [u8],
) -> Result<(ModuleFacts, &'a [u8]), Error> {
    let damaged = |reason| Error::SerializedDamaged { reason };
    let short = || damaged("it ends early");
    let rest = bytes.strip_prefix(MAGIC).ok_or(damaged("the magic bytes are missing"))?;
    let (version, rest) = rest.split_first_chunk().ok_or_else(short)?;
    if u32::from_le_bytes(*version) != VERSION {
        return Err(damaged("it has another format version"));
    }
    let (len, rest) = rest.split_first_chunk().ok_or_else(short)?;
    let len = u32::from_le_bytes(*len) as usize;
    let (written_by, rest) = rest.split_at_checked(len).ok_or_else(short)?;
    if written_by != fingerprint.as_bytes() {
        let written_by = String::from_utf8_lossy(written_by).into_owned();
        return Err(Error::SerializedElsewhere { written_by, this: fingerprint.to_owned() });
    }
    let (num_args, rest) = rest.split_first_chunk().ok_or_else(short)?;
    let num_args = u64::from_le_bytes(*num_args).checked_sub(1).map(|count| count as usize);
    let (calls_host, payload) = rest.split_first().ok_or_else(short)?;
    Ok((ModuleFacts { num_args, calls_host: *calls_host != 0 }, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: ModuleFacts = ModuleFacts { num_args: Some(1), calls_host: false };

    #[test]
    fn wrapped_executables_round_trip() {
        for num_args in [None, Some(0), Some(7)] {
            for calls_host in [false, true] {
                let facts = ModuleFacts { num_args, calls_host };
                let bytes = wrap("cpu 1", facts, b"code");
                assert_eq!(unwrap("cpu 1", &bytes), Ok((facts, &b"code"[..])));
            }
        }
    }

    #[test]
    fn compiler_mismatch_is_named() {
        let bytes = wrap("cpu 1", FACTS, b"code");
        let error = unwrap("cpu 2", &bytes).unwrap_err();
        let expected =
            Error::SerializedElsewhere { written_by: "cpu 1".into(), this: "cpu 2".into() };
        assert_eq!(error, expected);
    }

    #[test]
    fn corrupt_bytes_are_detected() {
        let bytes = wrap("cpu 1", FACTS, b"");
        for len in 0..bytes.len() {
            let error = unwrap("cpu 1", &bytes[..len]).unwrap_err();
            assert!(matches!(error, Error::SerializedDamaged { .. }), "{len}: {error}");
        }
        let mut newer = bytes;
        newer[8] = 2;
        let error = unwrap("cpu 1", &newer).unwrap_err();
        assert_eq!(error, Error::SerializedDamaged { reason: "it has another format version" });
    }
}
