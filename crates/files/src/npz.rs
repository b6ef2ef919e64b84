//! NumPy's archives: a zip archive with one `.npy` file for each tensor.

use std::collections::BTreeSet;
use std::io::{Cursor, Read, Seek, SeekFrom, Write};

use nxla_tensor::HostTensor;
use zip::read::ZipFile;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::npy::{MAGIC, read_npy, write_npy};
use crate::{FileError, Result};

/// The suffix of the members.
const SUFFIX: &str = ".npy";
/// The highest compression ratio of an archive, which limits the memory that a small archive can
/// request. The ratio of the method `deflate` is at most 1,032.
const MOST_COMPRESSION: u64 = 1_100;

/// Returns tensors by name as the bytes of a `.npz` archive, without compression.
///
/// ```
/// use nxla_files::{read_npz, write_npz};
/// use nxla_tensor::HostTensor;
///
/// let x = HostTensor::from_slice(&[1.0f32, 2.0], [2])?;
/// let data = write_npz(&[("x".to_owned(), x)])?;
/// assert_eq!(read_npz(std::io::Cursor::new(data))?[0].0, "x");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns [`FileError::Unsupported`] if NumPy does not have a dtype, or the format cannot store a
/// name.
pub fn write_npz(tensors: &[(String, HostTensor)]) -> Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options =
        SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    for (name, x) in tensors {
        let data = write_npy(x).map_err(|error| error.within(&format!("{name:?}")))?;
        let added = archive.start_file(format!("{name}{SUFFIX}"), options);
        added
            .and_then(|()| Ok(archive.write_all(&data)?))
            .map_err(|error| FileError::Unsupported(format!("{name:?}: {error}")))?;
    }
    let written = archive.finish().map_err(|error| FileError::Unsupported(error.to_string()))?;
    Ok(written.into_inner())
}

/// Reads tensors by name from a `.npz` archive, compressed or not, in the order of the archive.
///
/// ```
/// use std::io::Cursor;
///
/// use nxla_files::{read_npz, write_npz};
/// use nxla_tensor::HostTensor;
///
/// let x = HostTensor::from_slice(&[1, 2], [2])?;
/// let data = write_npz(&[("x".to_owned(), x)])?;
/// assert_eq!(read_npz(Cursor::new(&data))?[0].1.to_vec::<i32>()?, [1, 2]);
/// assert!(read_npz(Cursor::new(&data[..data.len() - 1])).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns [`FileError::Damaged`] for damaged data, and for a dtype that nxla does not have.
pub fn read_npz<R: Read + Seek>(mut source: R) -> Result<Vec<(String, HostTensor)>> {
    let broken = |error: String| FileError::Damaged(format!("the archive is damaged: {error}"));
    let size = source.seek(SeekFrom::End(0)).map_err(|error| broken(error.to_string()))?;
    let mut start = [0; MAGIC.len()];
    let read = source.rewind().and_then(|()| source.read_exact(&mut start));
    if read.is_ok() && &start == MAGIC {
        return Err(FileError::Array);
    }
    let mut archive = ZipArchive::new(source).map_err(|error| broken(error.to_string()))?;
    let (mut tensors, mut names, mut packed) = (Vec::new(), BTreeSet::new(), 0u64);
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(|error| broken(error.to_string()))?;
        let name = member.name().strip_suffix(SUFFIX).unwrap_or(member.name()).to_owned();
        packed = packed.saturating_add(member.compressed_size());
        let part = format!("member {name:?}");
        if packed > size {
            let why = format!("expected members within {size} bytes; got {packed}");
            return Err(FileError::Damaged(why).within(&part));
        }
        let npy = unpack(&mut member).map_err(|error| error.within(&part))?;
        let x = read_npy(&npy).map_err(|error| error.within(&part))?;
        if !names.insert(name.clone()) {
            return Err(broken(format!("the member {name:?} is there twice")));
        }
        tensors.push((name, x));
    }
    Ok(tensors)
}

/// Returns the content of a member.
fn unpack<R: Read>(member: &mut ZipFile<'_, R>) -> Result<Vec<u8>> {
    let most = member.compressed_size().saturating_mul(MOST_COMPRESSION);
    if member.size() > most {
        let why = format!("expected at most {most} bytes; got {}", member.size());
        return Err(FileError::Damaged(why));
    }
    // The buffer grows with the data, so a wrong size in the archive allocates nothing.
    let mut npy = Vec::new();
    let read = member.take(most).read_to_end(&mut npy);
    read.map_err(|error| FileError::Damaged(format!("the archive is damaged: {error}")))?;
    Ok(npy)
}
