//! Tensors of a file: `TensorProto` with typed, raw or external data.

use half::{bf16, f16};
use nxla_tensor::{DType, HostTensor, Shape, TensorError};

use super::error::{Built, invalid, unsupported};
use super::proto::Stored;
use super::wire::{Field, Message};
use crate::error::ImportError;

/// Access to files with weights in the folder of a model. The import itself opens no files.
pub trait External {
    /// Returns the number of bytes of a file. `location` is relative to the folder of the model and
    /// has no `..` component.
    ///
    /// # Errors
    /// Returns the reason if there is no such file.
    fn size(&mut self, location: &str) -> Result<u64, String>;

    /// Fills `bytes` from a file, starting at `offset`.
    ///
    /// # Errors
    /// Returns the reason if the file cannot be read.
    fn read(&mut self, location: &str, offset: u64, bytes: &mut [u8]) -> Result<(), String>;
}

/// A source without any file, for a model that contains all weights.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoExternal;

impl External for NoExternal {
    fn size(&mut self, location: &str) -> Result<u64, String> {
        Err(format!("the model has weights in the file {location:?}; import it by its path"))
    }

    fn read(&mut self, location: &str, _: u64, _: &mut [u8]) -> Result<(), String> {
        Err(format!("must not read the file {location:?}"))
    }
}

/// Returns the dtype of an ONNX data type.
///
/// # Errors
/// Returns the reason for a type without a counterpart, and for a number that is not a data type.
pub(super) fn dtype_of(data_type: i64) -> Built<DType> {
    Ok(match data_type {
        1 => DType::F32,
        2 => DType::U8,
        3 => DType::S8,
        4 => DType::U16,
        5 => DType::S16,
        6 => DType::S32,
        7 => DType::S64,
        8 => return unsupported("tensors of strings are not supported"),
        9 => DType::Pred,
        10 => DType::F16,
        11 => DType::F64,
        12 => DType::U32,
        13 => DType::U64,
        14 => DType::C64,
        15 => DType::C128,
        16 => DType::BF16,
        17 => DType::F8E4M3FN,
        19 => DType::F8E5M2,
        21 => DType::U4,
        22 => DType::S4,
        25 => DType::U2,
        26 => DType::S2,
        18 | 20 | 23 | 24 => {
            let name = match data_type {
                18 => "float8e4m3fnuz",
                20 => "float8e5m2fnuz",
                23 => "float4e2m1",
                _ => "float8e8m0",
            };
            return unsupported(format!("the dtype {name} is not supported"));
        }
        other => return invalid(format!("the data type {other} is unknown")),
    })
}

/// The fields of a `TensorProto`.
#[derive(Default)]
struct Parts<'a> {
    name: String,
    dims: Vec<u64>,
    data_type: i64,
    floats: Vec<f32>,
    ints: Vec<u64>,
    doubles: Vec<f64>,
    raw: Option<Message<'a>>,
    is_external: bool,
    location: String,
    offset: u64,
    length: Option<u64>,
}

/// Reads a tensor and its name.
pub(super) fn read_tensor(
    mut from: Message<'_>,
    external: &mut dyn External,
) -> Result<(String, Stored), ImportError> {
    let start = from;
    let mut parts = Parts::default();
    while let Some((number, field)) = from.field()? {
        match number {
            1 => field.integers(&from, &mut parts.dims)?,
            2 => parts.data_type = field.integer(&from)?,
            4 => field.floats(&from, &mut parts.floats)?,
            5 | 7 | 11 => field.integers(&from, &mut parts.ints)?,
            8 => parts.name = field.text(&from)?,
            9 => parts.raw = Some(field.message(&from)?),
            10 => field.doubles(&from, &mut parts.doubles)?,
            13 => parts.external_entry(field, &from)?,
            14 => parts.is_external = field.integer(&from)? == 1,
            _ => {}
        }
    }
    let dtype = match dtype_of(parts.data_type) {
        Ok(dtype) => dtype,
        Err(why) => return Ok((parts.name, Err(why))),
    };
    let name = std::mem::take(&mut parts.name);
    let tensor = parts.tensor(dtype, external);
    let located = tensor.map_err(|why| start.error(format!("tensor {name:?}: {why}")))?;
    Ok((name, Ok(located)))
}

impl<'a> Parts<'a> {
    fn external_entry(
        &mut self,
        field: Field<'a>,
        around: &Message<'a>,
    ) -> Result<(), ImportError> {
        let (mut entry, mut key, mut value) = (field.message(around)?, "", "");
        while let Some((number, field)) = entry.field()? {
            match number {
                1 => key = field.message(&entry)?.text()?,
                2 => value = field.message(&entry)?.text()?,
                _ => {}
            }
        }
        let number = || {
            let wrong =
                || entry.error(format!("{key} of external data: must be a size; got {value:?}"));
            value.parse::<u64>().map_err(|_| wrong())
        };
        match key {
            "location" => self.location = value.to_owned(),
            "offset" => self.offset = number()?,
            "length" => self.length = Some(number()?),
            _ => {}
        }
        Ok(())
    }

    fn tensor(&self, dtype: DType, external: &mut dyn External) -> Result<HostTensor, String> {
        let mut shape = Shape::scalar();
        for &size in &self.dims {
            let size = usize::try_from(size.cast_signed());
            shape.push(size.map_err(|_| "sizes must not be negative".to_owned())?);
        }
        let count = shape.checked_size().ok_or("the shape is too large")?;
        let packed = packed_bytes(dtype, count).ok_or("the shape is too large")?;
        if self.is_external {
            return self.external_tensor(dtype, shape, packed, external);
        }
        if let Some(raw) = self.raw {
            if dtype.bits() < 8 {
                return unpack(dtype, shape, count, raw.bytes);
            }
            return HostTensor::from_bytes(dtype, shape, raw.bytes)
                .map_err(|error| error.to_string());
        }
        self.read_typed_fields(dtype, shape, count)
    }

    /// Reads `float_data`, `int32_data` and the other typed fields.
    fn read_typed_fields(
        &self,
        dtype: DType,
        shape: Shape,
        count: usize,
    ) -> Result<HostTensor, String> {
        #[expect(clippy::cast_possible_truncation, reason = "the field holds values of the dtype")]
        let halves = || self.ints.iter().map(|&bits| bits as u16);
        #[expect(clippy::cast_possible_truncation, reason = "an entry of the field holds one byte")]
        let bytes = || -> Vec<u8> { self.ints.iter().map(|&bits| bits as u8).collect() };
        let tensor = match dtype {
            DType::F32 => HostTensor::from_slice(&self.floats, shape),
            DType::F64 => HostTensor::from_slice(&self.doubles, shape),
            DType::C64 => HostTensor::from_bytes(dtype, shape, bytemuck::cast_slice(&self.floats)),
            DType::C128 => {
                HostTensor::from_bytes(dtype, shape, bytemuck::cast_slice(&self.doubles))
            }
            DType::F16 => HostTensor::from_vec(halves().map(f16::from_bits).collect(), shape),
            DType::BF16 => HostTensor::from_vec(halves().map(bf16::from_bits).collect(), shape),
            DType::F8E5M2 | DType::F8E4M3FN => HostTensor::from_bytes(dtype, shape, &bytes()),
            DType::U2 | DType::U4 | DType::S2 | DType::S4 => {
                return unpack(dtype, shape, count, &bytes());
            }
            DType::Pred
            | DType::U8
            | DType::U16
            | DType::U32
            | DType::U64
            | DType::S8
            | DType::S16
            | DType::S32
            | DType::S64 => {
                let values: Vec<i64> = self.ints.iter().map(|value| value.cast_signed()).collect();
                HostTensor::from_vec(values, shape).map(|wide| wide.cast(dtype))
            }
        };
        tensor.map_err(|error| error.to_string())
    }

    fn external_tensor(
        &self,
        dtype: DType,
        shape: Shape,
        bytes: usize,
        external: &mut dyn External,
    ) -> Result<HostTensor, String> {
        let location = self.location.as_str();
        let is_inside = !location.is_empty()
            && !location.starts_with(['/', '\\'])
            && !location.contains(['\0', ':'])
            && location.split(['/', '\\']).all(|part| part != "..");
        if !is_inside {
            return Err(format!(
                "external data: must lie in the folder of the model; got {location:?}"
            ));
        }
        if self.length.is_some_and(|length| length != bytes as u64) {
            let length = self.length.unwrap_or(0);
            return Err(format!("external data has {length} bytes, the shape needs {bytes}"));
        }
        let size = external.size(location)?;
        let end = self.offset.checked_add(bytes as u64);
        if end.is_none_or(|end| end > size) {
            let offset = self.offset;
            return Err(format!(
                "external data: {bytes} bytes at {offset} lie beyond the {size} bytes of \
                 {location:?}"
            ));
        }
        if dtype.bits() < 8 {
            let mut packed = vec![0; bytes];
            external.read(location, self.offset, &mut packed)?;
            let count = shape.size();
            return unpack(dtype, shape, count, &packed);
        }
        let read = |into: &mut [u8]| external.read(location, self.offset, into).map_err(ReadError);
        HostTensor::from_writer(dtype, shape, read).map_err(|error| error.0)
    }
}

/// An error of [`External::read`], or of the tensor that is to hold the bytes.
struct ReadError(String);

impl From<TensorError> for ReadError {
    fn from(error: TensorError) -> Self {
        ReadError(error.to_string())
    }
}

/// The number of bytes of raw data; elements below eight bits share bytes.
fn packed_bytes(dtype: DType, count: usize) -> Option<usize> {
    let bits = dtype.bits() as usize;
    count.checked_mul(bits).map(|bits| bits.div_ceil(8))
}

/// Unpacks integers of two or four bits; the first integer is in the low bits.
fn unpack(dtype: DType, shape: Shape, count: usize, bytes: &[u8]) -> Result<HostTensor, String> {
    let bits = dtype.bits() as usize;
    let each = 8 / bits;
    if bytes.len() != count.div_ceil(each) {
        let needed = count.div_ceil(each);
        return Err(format!("{} bytes of data, the shape needs {needed}", bytes.len()));
    }
    let unpacked: Vec<u8> = (0..count)
        .map(|index| {
            let low = (bytes[index / each] >> (bits * (index % each))) & ((1 << bits) - 1);
            let is_negative = dtype.is_signed() && low >> (bits - 1) == 1;
            if is_negative { low | (0xff << bits) } else { low }
        })
        .collect();
    HostTensor::from_bytes(dtype, shape, &unpacked).map_err(|error| error.to_string())
}
