//! NumPy's files of one array.

use std::borrow::Cow;

use nxla_tensor::{DType, HostTensor};

use crate::{FileError, Result, in_order, part_width, tensor_of};

pub(crate) const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// The start of a zip archive.
const ARCHIVE: &[u8; 4] = b"PK\x03\x04";
/// The length of the magic string, the version, and the length of the header in version 1.
const PREFIX: usize = 10;
/// The alignment of the elements in a file.
const ALIGNMENT: usize = 64;
/// The maximum length of a header, as in NumPy.
const LONGEST_HEADER: usize = 10_000;

/// Returns a tensor as the bytes of a `.npy` file of version 1.
///
/// ```
/// use nxla_files::write_npy;
/// use nxla_tensor::HostTensor;
///
/// let data = write_npy(&HostTensor::from_slice(&[1.0f32, 2.0], [2])?)?;
/// assert!(data.starts_with(b"\x93NUMPY"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns [`FileError::Unsupported`] if NumPy does not have the dtype.
pub fn write_npy(x: &HostTensor) -> Result<Vec<u8>> {
    let Some((kind, size)) = their_dtype(x.dtype()) else {
        let why = format!("dtype must exist in NumPy; got {}", x.dtype());
        return Err(FileError::Unsupported(why));
    };
    let order = if part_width(x.dtype()) == 1 { '|' } else { '<' };
    let sizes: Vec<String> = x.shape().iter().map(usize::to_string).collect();
    let shape = match &sizes[..] {
        [size] => format!("({size},)"),
        sizes => format!("({})", sizes.join(", ")),
    };
    let mut header =
        format!("{{'descr': '{order}{kind}{size}', 'fortran_order': False, 'shape': {shape}, }}");
    let end = (PREFIX + header.len() + 1).next_multiple_of(ALIGNMENT);
    header.extend(std::iter::repeat_n(' ', end - PREFIX - header.len() - 1));
    header.push('\n');
    // The header of a tensor with 64 axes, the largest rank, is shorter than 64 KiB.
    let length = u16::try_from(header.len()).expect("a short header");
    let mut data = Vec::with_capacity(end + x.byte_size());
    data.extend_from_slice(MAGIC);
    data.extend_from_slice(&[1, 0]);
    data.extend_from_slice(&length.to_le_bytes());
    data.extend_from_slice(header.as_bytes());
    data.extend_from_slice(&in_order(x.bytes(), part_width(x.dtype()), true));
    Ok(data)
}

/// Reads a tensor from the bytes of a `.npy` file.
///
/// ```
/// use nxla_files::{read_npy, write_npy};
/// use nxla_tensor::HostTensor;
///
/// let data = write_npy(&HostTensor::from_slice(&[1, 2, 3, 4], [2, 2])?)?;
/// assert_eq!(read_npy(&data)?.shape()[..], [2, 2]);
/// let error = read_npy(&data[..data.len() - 1]).unwrap_err();
/// assert_eq!(error.to_string(), "at byte 128, expected 16 bytes of elements; got 15");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns [`FileError::Damaged`] for damaged data, for elements that are Python objects or records,
/// and for a dtype that nxla does not have.
pub fn read_npy(data: &[u8]) -> Result<HostTensor> {
    if data.starts_with(ARCHIVE) {
        return Err(FileError::Archive);
    }
    let wrong = |at: usize, why: String| FileError::Damaged(format!("at byte {at}, {why}"));
    let (text, start) = split_header(data).map_err(|(at, why)| wrong(at, why))?;
    let expected = || "expected a header of dtype, order and shape".to_owned();
    let at = start - text.len();
    let header = Header::parse(text).ok_or_else(|| wrong(at, expected()))?;
    let (dtype, is_little) = our_dtype(&header.descr).ok_or_else(|| {
        wrong(at, format!("expected a dtype that exists in nxla; got {:?}", header.descr))
    })?;
    let count = header.shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
    let bytes = count.and_then(|count| count.checked_mul(dtype.size()));
    let elements = &data[start..];
    if bytes != Some(elements.len()) {
        let expected = bytes.map_or_else(|| "fewer".to_owned(), |bytes| bytes.to_string());
        let why = format!("expected {expected} bytes of elements; got {}", elements.len());
        return Err(wrong(start, why));
    }
    let mut elements = in_order(elements, part_width(dtype), is_little);
    if header.is_fortran {
        elements = Cow::Owned(from_column_major(&header.shape, dtype.size(), &elements));
    }
    tensor_of(dtype, header.shape, &elements, &format!("at byte {start}, "))
}

/// Returns elements of `width` bytes in row-major order from their column-major order.
fn from_column_major(shape: &[usize], width: usize, elements: &[u8]) -> Vec<u8> {
    let mut strides = vec![width; shape.len()];
    for axis in 1..shape.len() {
        strides[axis] = strides[axis - 1] * shape[axis - 1];
    }
    let mut rows = Vec::with_capacity(elements.len());
    let (mut index, mut at) = (vec![0; shape.len()], 0);
    while rows.len() < elements.len() {
        rows.extend_from_slice(&elements[at..at + width]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    rows
}

/// Returns the header and the offset of the elements, or the offset of a mistake and its description.
fn split_header(data: &[u8]) -> std::result::Result<(&str, usize), (usize, String)> {
    if !data.starts_with(MAGIC) {
        return Err((0, "expected the start of a file of NumPy".into()));
    }
    // The length of the header has two bytes in version 1, and four in later ones.
    let (length, start) = match data.get(MAGIC.len()..) {
        Some([1, 0, a, b, ..]) => (usize::from(u16::from_le_bytes([*a, *b])), PREFIX),
        Some([2 | 3, 0, a, b, c, d, ..]) => {
            (u32::from_le_bytes([*a, *b, *c, *d]) as usize, PREFIX + 2)
        }
        _ => return Err((6, "expected a version of the format from 1.0 to 3.0".into())),
    };
    let rest = &data[start..];
    let most = rest.len().min(LONGEST_HEADER);
    let header = rest
        .get(..length)
        .filter(|_| length <= most)
        .ok_or_else(|| (8, format!("expected a header of at most {most} bytes; got {length}")))?;
    let text = str::from_utf8(header).map_err(|error| (start, error.to_string()))?;
    Ok((text, start + length))
}

/// The content of a header, which is a literal of Python.
struct Header {
    descr: String,
    is_fortran: bool,
    shape: Vec<usize>,
}

impl Header {
    /// Parses a dictionary of the three keys in any order. Returns `None` for anything else.
    fn parse(text: &str) -> Option<Header> {
        let (mut descr, mut is_fortran, mut shape) = (None, None, None);
        let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
        while !rest.is_empty() {
            let (key, after) = string(rest)?;
            let value = after.trim_start().strip_prefix(':')?.trim_start();
            let is_new;
            (is_new, rest) = match key {
                "descr" => {
                    let (found, after) = string(value)?;
                    (descr.replace(found.to_owned()).is_none(), after)
                }
                "fortran_order" => {
                    let (found, after) = boolean(value)?;
                    (is_fortran.replace(found).is_none(), after)
                }
                "shape" => {
                    let (found, after) = sizes(value)?;
                    (shape.replace(found).is_none(), after)
                }
                _ => return None,
            };
            rest = rest.trim_start();
            rest = match rest.strip_prefix(',') {
                Some(after) => after.trim_start(),
                None if rest.is_empty() => rest,
                None => return None,
            };
            if !is_new {
                return None;
            }
        }
        Some(Header { descr: descr?, is_fortran: is_fortran?, shape: shape? })
    }
}

/// Splits a string without escapes from the start of a text.
fn string(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let (content, rest) = text[1..].split_once(quote)?;
    (!content.contains('\\')).then_some((content, rest))
}

/// Splits a boolean from the start of a text.
fn boolean(text: &str) -> Option<(bool, &str)> {
    let no = || text.strip_prefix("False").map(|rest| (false, rest));
    text.strip_prefix("True").map(|rest| (true, rest)).or_else(no)
}

/// Splits a tuple of sizes from the start of a text.
fn sizes(text: &str) -> Option<(Vec<usize>, &str)> {
    let (content, rest) = text.strip_prefix('(')?.split_once(')')?;
    let content = content.trim();
    // A comma follows the only item of a tuple, and may follow the last one of several.
    let items = content.strip_suffix(',');
    if content.is_empty() {
        return Some((Vec::new(), rest));
    }
    let items: Vec<&str> = items.unwrap_or(content).split(',').collect();
    if items.len() == 1 && !content.ends_with(',') {
        return None;
    }
    let is_size = |item: &str| item.bytes().all(|byte| byte.is_ascii_digit());
    // Python 2 marks long integers with an `L`.
    let items = items.into_iter().map(|item| item.trim().trim_end_matches('L'));
    let sizes = items.map(|item| is_size(item).then(|| item.parse().ok()).flatten());
    Some((sizes.collect::<Option<_>>()?, rest))
}

/// Returns the kind and the size of an element in NumPy, or `None` if it has no such dtype.
fn their_dtype(dtype: DType) -> Option<(char, usize)> {
    let kind = match dtype {
        DType::Pred => 'b',
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => 'u',
        DType::S8 | DType::S16 | DType::S32 | DType::S64 => 'i',
        DType::F16 | DType::F32 | DType::F64 => 'f',
        DType::C64 | DType::C128 => 'c',
        DType::U2 | DType::U4 | DType::S2 | DType::S4 => return None,
        DType::F8E5M2 | DType::F8E4M3FN | DType::BF16 => return None,
    };
    Some((kind, dtype.size()))
}

/// Returns the dtype of a description such as `<f4`, and whether its byte order is little-endian.
fn our_dtype(descr: &str) -> Option<(DType, bool)> {
    let is_little = match descr.chars().next()? {
        '<' => true,
        '>' => false,
        '|' | '=' => cfg!(target_endian = "little"),
        _ => return None,
    };
    let named = |dtype: &DType| {
        their_dtype(*dtype).is_some_and(|(kind, size)| descr[1..] == format!("{kind}{size}"))
    };
    DType::ALL.into_iter().find(named).map(|dtype| (dtype, is_little))
}
