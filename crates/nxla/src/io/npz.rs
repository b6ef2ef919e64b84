//! NumPy's archives: a zip archive with one `.npy` file for each tensor.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};

use nxla_runtime::Error;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::npy::{from_npy, write_npy};
use super::{damaged, mistake, tensors_by_name};
use crate::containers::Tree;
use crate::{Result, Tensor};

/// The suffix of the members.
const SUFFIX: &str = ".npy";

/// Returns the tensors of a container as the bytes of a `.npz` archive, without compression.
///
/// ```
/// use nxla::{Tensor, io};
///
/// let data = io::to_npz(&(Tensor::from([1.0f32, 2.0]), Tensor::from(3)))?;
/// assert_eq!(io::from_npz(&data)?["1"].item::<i32>()?, 3);
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns an error if NumPy does not have a dtype, and the error of a failed computation.
pub fn to_npz<C: Tree<Tensor>>(container: &C) -> Result<Vec<u8>> {
    const FUNCTION: &str = "to_npz";
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options =
        SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    for (name, x) in tensors_by_name(FUNCTION, container)? {
        let data = write_npy(&format!("{FUNCTION}: {name:?}"), &x)?;
        let added = archive.start_file(format!("{name}{SUFFIX}"), options);
        added
            .and_then(|()| Ok(archive.write_all(&data)?))
            .map_err(|error| mistake(FUNCTION, format!("{name:?}: {error}")))?;
    }
    let written = archive.finish().map_err(|error| mistake(FUNCTION, error.to_string()))?;
    Ok(written.into_inner())
}

/// Reads tensors by name from the bytes of a `.npz` archive, compressed or not.
///
/// ```
/// use nxla::{Tensor, io};
///
/// let data = io::to_npz(&[Tensor::from([1, 2])])?;
/// assert_eq!(io::from_npz(&data)?["0"].to_vec::<i32>()?, [1, 2]);
/// assert!(io::from_npz(&data[..data.len() - 1]).is_err());
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Format`] for damaged data, and for a dtype that nxla does not have.
pub fn from_npz(data: &[u8]) -> Result<BTreeMap<String, Tensor>> {
    const FUNCTION: &str = "from_npz";
    let broken = |error: String| damaged(FUNCTION, format!("the archive is damaged: {error}"));
    let mut archive =
        ZipArchive::new(Cursor::new(data)).map_err(|error| broken(error.to_string()))?;
    let mut found = BTreeMap::new();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(|error| broken(error.to_string()))?;
        let name = member.name().to_owned();
        let name = name.strip_suffix(SUFFIX).unwrap_or(&name).to_owned();
        // The buffer grows with the data, so a wrong size in the archive allocates nothing.
        let mut npy = Vec::new();
        member.read_to_end(&mut npy).map_err(|error| broken(format!("{name:?}: {error}")))?;
        let x = from_npy(&npy).map_err(|error| match error {
            Error::Format { why, .. } => damaged(FUNCTION, format!("member {name:?}: {why}")),
            error => error,
        })?;
        if found.insert(name.clone(), x).is_some() {
            return Err(broken(format!("the member {name:?} is there twice")));
        }
    }
    Ok(found)
}
