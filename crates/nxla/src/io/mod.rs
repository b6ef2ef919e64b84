//! Tensors in files of other libraries: NumPy's `.npy` and `.npz`, and `.safetensors`.
//!
//! [`save`] writes the tensors of a container under the paths of the leaves, and [`load_into`] reads
//! the tensors into a container of the same structure. [`load`] reads a file of any origin into a map.
//! The names are the same as in Python: the weights of the first layer are `layers.0.weights`.
//!
//! ```
//! use nxla::prelude::*;
//! use nxla::io;
//!
//! #[derive(Container)]
//! struct Layer<T> {
//!     weights: T,
//!     bias: T,
//! }
//!
//! # let file = std::env::temp_dir().join(format!("nxla-io-{}.safetensors", std::process::id()));
//! let layers = [Layer { weights: Tensor::from([[1.0f32, 2.0]]), bias: Tensor::from([0.5f32]) }];
//! io::save(&file, &layers)?;
//! assert_eq!(io::load(&file)?["0.bias"].to_vec::<f32>()?, [0.5]);
//! let [layer] = io::load_into(&file, &layers)?;
//! assert_eq!(layer.weights.to_vec::<f32>()?, [1.0, 2.0]);
//! # std::fs::remove_file(&file).expect("it has been written");
//! # Ok::<(), nxla::Error>(())
//! ```
//!
//! Readers compare all sizes with the length of the data before they allocate memory, and run no code
//! from a file. The formats do not store axis names. The module needs the feature `io`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io, process};

use nxla_expr::TensorType;
use nxla_files::{
    FileError, read_npy, read_npz, read_safetensors, write_npy, write_npz, write_safetensors,
};
use nxla_runtime::Error;
use nxla_tensor::HostTensor;

use crate::containers::{Tree, paths_of};
use crate::{Result, Tensor};

/// The formats, selected by the suffix of the name of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Npy,
    Npz,
    Safetensors,
}

/// Writes the tensors of a container to a file, in the format of its suffix: `.npy` for one tensor,
/// `.npz` or `.safetensors`.
///
/// The data are written to another file in the folder, which then replaces the old one. A failure
/// therefore leaves the old file unchanged.
///
/// ```
/// use nxla::{Tensor, io};
///
/// # let file = std::env::temp_dir().join(format!("nxla-save-{}.npy", std::process::id()));
/// io::save(&file, &Tensor::from([1.0f32, 2.0]))?;
/// assert_eq!(io::load(&file)?["tensor"].to_vec::<f32>()?, [1.0, 2.0]);
/// # std::fs::remove_file(&file).expect("it has been written");
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Arguments`] for another suffix, or if the format does not support the container or
/// a dtype. Returns [`Error::File`] if the file cannot be written, and the error of a failed computation.
pub fn save<C: Tree<Tensor>>(file: impl AsRef<Path>, container: &C) -> Result<()> {
    let file = file.as_ref();
    let data = match Format::of("save", file)? {
        Format::Npy => {
            if paths_of(container, "") != [""] {
                let why = "container: must be one tensor for a .npy file; use .npz for a container";
                return Err(mistake("save", why));
            }
            to_npy(&container.leaves()[0])?
        }
        Format::Npz => to_npz(container)?,
        Format::Safetensors => to_safetensors(container, &BTreeMap::new())?,
    };
    let mut beside = file.as_os_str().to_owned();
    beside.push(format!(".{}.part", process::id()));
    let beside = PathBuf::from(beside);
    let written = fs::write(&beside, data).and_then(|()| fs::rename(&beside, file));
    written.map_err(|error| {
        // Ignore this error: the failed write is reported, and the partial file may not exist.
        let _ = fs::remove_file(&beside);
        in_file("save", file, error)
    })
}

/// Reads the tensors of a file by name. The tensor of a `.npy` file has the name `tensor`.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use nxla::{Tensor, io};
///
/// # let file = std::env::temp_dir().join(format!("nxla-load-{}.npz", std::process::id()));
/// io::save(&file, &BTreeMap::from([("w".to_owned(), Tensor::from([1, 2]))]))?;
/// assert_eq!(io::load(&file)?["w"].to_vec::<i32>()?, [1, 2]);
/// # std::fs::remove_file(&file).expect("it has been written");
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Arguments`] for another suffix, [`Error::File`] if the file cannot be read, and
/// [`Error::Format`] for damaged data or an unsupported dtype.
pub fn load(file: impl AsRef<Path>) -> Result<BTreeMap<String, Tensor>> {
    read("load", file.as_ref())
}

/// Reads the tensors of a file for a function.
fn read(function: &str, file: &Path) -> Result<BTreeMap<String, Tensor>> {
    let format = Format::of(function, file)?;
    let data = fs::read(file).map_err(|error| in_file(function, file, error))?;
    let tensors = match format {
        Format::Npy => from_npy(&data).map(|x| BTreeMap::from([(WHOLE.to_owned(), x)])),
        Format::Npz => from_npz(&data),
        Format::Safetensors => from_safetensors(&data),
    };
    tensors.map_err(|error| match error {
        Error::Format { format, why } => {
            Error::Format { format: format!("{function}: {}: {format}", file.display()), why }
        }
        error => error,
    })
}

/// Reads the tensors of a file into a container of the same structure as `container`, which defines
/// the names, shapes and dtypes that the file must contain. The results have its axis names.
///
/// ```
/// use nxla::{Tensor, io};
///
/// # let file = std::env::temp_dir().join(format!("nxla-into-{}.npz", std::process::id()));
/// let pair = (Tensor::from([1.0f32, 2.0]), Tensor::from(3));
/// io::save(&file, &pair)?;
/// let (x, n) = io::load_into(&file, &pair)?;
/// assert_eq!((x.to_vec::<f32>()?, n.item::<i32>()?), (vec![1.0, 2.0], 3));
/// let error = io::load_into(&file, &[Tensor::from(1)]).unwrap_err();
/// assert!(error.to_string().contains("must be s32; got f32[2]"));
/// # std::fs::remove_file(&file).expect("it has been written");
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns the errors of [`load`], and [`Error::Arguments`] if the file lacks a tensor, contains
/// another one, or contains one of another shape or dtype.
pub fn load_into<C: Tree<Tensor>>(file: impl AsRef<Path>, container: &C) -> Result<C> {
    let file = file.as_ref();
    let wrong = |why: String| mistake("load_into", format!("{}: {why}", file.display()));
    let mut tensors = read("load_into", file)?;
    let mut names = names("load_into", container)?.into_iter();
    let filled = container.try_map(|expected| {
        let name = names.next().expect("each leaf has a name");
        let Some(found) = tensors.remove(&name) else {
            return Err(wrong(format!("must contain a tensor {name:?}")));
        };
        if (found.dtype(), found.shape()) != (expected.dtype(), expected.shape()) {
            let expected = TensorType::new(expected.dtype(), expected.shape().clone());
            return Err(wrong(format!("{name:?}: must be {expected}; got {}", found.ty())));
        }
        found.with_names(expected.names().cloned())
    })?;
    match tensors.keys().next() {
        None => Ok(filled),
        Some(name) => {
            Err(wrong(format!("must contain the tensors of the container only; got {name:?}")))
        }
    }
}

/// Returns a tensor as the bytes of a `.npy` file.
///
/// ```
/// use nxla::{Tensor, io};
///
/// let data = io::to_npy(&Tensor::from([1.0f32, 2.0]))?;
/// assert!(data.starts_with(b"\x93NUMPY"));
/// assert_eq!(io::from_npy(&data)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns an error if NumPy does not have the dtype, and the error of a failed computation.
pub fn to_npy(x: &Tensor) -> Result<Vec<u8>> {
    write_npy(&on_host("to_npy", x)?).map_err(|error| error_of("to_npy", error))
}

/// Reads a tensor from the bytes of a `.npy` file.
///
/// ```
/// use nxla::{Tensor, io};
///
/// let data = io::to_npy(&Tensor::from([[1, 2], [3, 4]]))?;
/// assert_eq!(io::from_npy(&data)?.shape()[..], [2, 2]);
/// let error = io::from_npy(&data[..data.len() - 1]).unwrap_err();
/// assert_eq!(error.to_string(), "from_npy: at byte 128, expected 16 bytes of elements; got 15");
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Format`] for damaged data, for elements that are Python objects or records, and
/// for a dtype that nxla does not have.
pub fn from_npy(data: &[u8]) -> Result<Tensor> {
    read_npy(data).map(Tensor::from).map_err(|error| error_of("from_npy", error))
}

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
    let tensors = tensors_by_name("to_npz", container)?;
    write_npz(&tensors).map_err(|error| error_of("to_npz", error))
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
    let read = read_npz(io::Cursor::new(data)).map_err(|error| error_of("from_npz", error))?;
    Ok(read.into_iter().map(|(name, x)| (name, Tensor::from(x))).collect())
}

/// Returns the tensors of a container as bytes of the format safetensors, with strings as metadata.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use nxla::{Tensor, io};
///
/// let metadata = BTreeMap::from([("format".to_owned(), "pt".to_owned())]);
/// let data = io::to_safetensors(&(Tensor::from([1.0f32, 2.0]), Tensor::from(3)), &metadata)?;
/// assert_eq!(io::from_safetensors(&data)?["1"].item::<i32>()?, 3);
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the format does not support a dtype, or reserves a name. Returns the error of a
/// failed computation.
pub fn to_safetensors<C: Tree<Tensor>>(
    container: &C,
    metadata: &BTreeMap<String, String>,
) -> Result<Vec<u8>> {
    let tensors = tensors_by_name("to_safetensors", container)?;
    let metadata = metadata.iter().map(|(name, text)| (name.clone(), text.clone()));
    write_safetensors(&tensors, metadata).map_err(|error| error_of("to_safetensors", error))
}

/// Reads tensors by name from bytes of the format safetensors.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use nxla::{Tensor, io};
///
/// let data = io::to_safetensors(&[Tensor::from([1.0f32, 2.0])], &BTreeMap::new())?;
/// assert_eq!(io::from_safetensors(&data)?["0"].to_vec::<f32>()?, [1.0, 2.0]);
/// assert!(io::from_safetensors(&data[..data.len() - 1]).is_err());
/// # Ok::<(), nxla::Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Format`] for damaged data, and for a dtype that nxla does not have.
pub fn from_safetensors(data: &[u8]) -> Result<BTreeMap<String, Tensor>> {
    const FUNCTION: &str = "from_safetensors";
    let read = read_safetensors(data).map_err(|error| error_of(FUNCTION, error))?;
    if let Some((name, dtype)) = read.unsupported.first() {
        let why = format!("{name:?}: dtype must exist in nxla; got {dtype}");
        return Err(Error::Format { format: FUNCTION.into(), why });
    }
    Ok(read.tensors.into_iter().map(|(name, x)| (name, Tensor::from(x))).collect())
}

/// The name of a tensor that is not in a container.
const WHOLE: &str = "tensor";

impl Format {
    fn of(function: &str, file: &Path) -> Result<Format> {
        let suffix = file.extension().map(|suffix| suffix.to_string_lossy().to_lowercase());
        match suffix.as_deref() {
            Some("npy") => Ok(Format::Npy),
            Some("npz") => Ok(Format::Npz),
            Some("safetensors") => Ok(Format::Safetensors),
            _ => Err(mistake(
                function,
                format!(
                    "file: name must end with .npy, .npz or .safetensors; got {}",
                    file.display()
                ),
            )),
        }
    }
}

fn mistake(function: &str, why: impl Into<String>) -> Error {
    Error::Arguments { function: function.into(), why: why.into() }
}

/// Names the function in an error of a file.
fn error_of(function: &str, error: FileError) -> Error {
    match error {
        FileError::Damaged(_) | FileError::Archive | FileError::Array => {
            Error::Format { format: function.into(), why: error.to_string() }
        }
        FileError::Memory(error) => error.into(),
        // An unsupported dtype or name is a mistake of the caller.
        error => mistake(function, error.to_string()),
    }
}

fn in_file(function: &str, file: &Path, error: io::Error) -> Error {
    Error::File { function: function.into(), path: file.to_owned(), error }
}

/// Returns the tensors of a container on the host, by name.
fn tensors_by_name<C: Tree<Tensor>>(
    function: &str,
    container: &C,
) -> Result<Vec<(String, HostTensor)>> {
    let names = names(function, container)?;
    let named = names.into_iter().zip(container.leaves());
    named.map(|(name, x)| Ok((name, on_host(function, &x)?))).collect()
}

fn on_host(function: &str, x: &Tensor) -> Result<HostTensor> {
    if x.vectors().is_empty() {
        x.to_host()
    } else {
        Err(mistake(function, "tensor: must not have vectorized axes; use devectorize"))
    }
}

/// Returns the names of the leaves of a container, which are unique.
fn names<C: Tree<Tensor>>(function: &str, container: &C) -> Result<Vec<String>> {
    let names: Vec<String> = paths_of(container, "").iter().map(|path| name_of(path)).collect();
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(names),
        Some(pair) => Err(mistake(
            function,
            format!("container: names of tensors must be unique; got {:?} twice", pair[0]),
        )),
    }
}

/// Returns the name for a path: the path `.layers[0]["w"]` has the name `layers.0.w`.
fn name_of(path: &str) -> String {
    if path.is_empty() {
        return WHOLE.into();
    }
    let mut name = String::new();
    let mut rest = path;
    while let Some((start, after)) = rest.split_once('[') {
        name.push_str(start);
        name.push('.');
        rest = match after.strip_prefix('"') {
            Some(key) => unescape(key, &mut name),
            None => {
                let (index, after) = after.split_once(']').unwrap_or((after, ""));
                name.push_str(index);
                after
            }
        };
    }
    name.push_str(rest);
    name.strip_prefix('.').unwrap_or(&name).to_owned()
}

/// Appends a key, which is written as by `Debug`, and returns the text after its bracket.
fn unescape<'a>(key: &'a str, name: &mut String) -> &'a str {
    let mut chars = key.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return key[at + 1..].strip_prefix(']').unwrap_or(&key[at + 1..]),
            '\\' => match chars.next() {
                Some((_, 'n')) => name.push('\n'),
                Some((_, 'r')) => name.push('\r'),
                Some((_, 't')) => name.push('\t'),
                Some((_, '0')) => name.push('\0'),
                Some((_, 'u')) => {
                    let code: String = chars
                        .by_ref()
                        .map(|(_, char)| char)
                        .skip(1)
                        .take_while(|&char| char != '}')
                        .collect();
                    name.extend(u32::from_str_radix(&code, 16).ok().and_then(char::from_u32));
                }
                Some((_, char)) => name.push(char),
                None => {}
            },
            char => name.push(char),
        }
    }
    ""
}
