//! Serialization of names and tensors with `serde`. Dtypes, shapes and scalars implement it in
//! their modules.
//!
//! Elements are written as little-endian bytes on all machines. Reading checks that the number of
//! bytes fits the shape, and that `pred` and sub-byte integers are in range.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::dtype::DType;
use crate::host::HostTensor;
use crate::names::{AxisName, Names};
use crate::shape::Shape;

/// Names are written as a list of optional names.
impl Serialize for Names {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Names, D::Error> {
        Vec::<Option<AxisName>>::deserialize(deserializer).map(Names::new)
    }
}

/// The serialized form of a tensor.
#[derive(Serialize, Deserialize)]
#[serde(rename = "HostTensor")]
struct Wire<'a> {
    dtype: DType,
    shape: Cow<'a, Shape>,
    names: Option<Cow<'a, Names>>,
    #[serde(borrow)]
    bytes: Bytes<'a>,
}

impl Serialize for HostTensor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = Wire {
            dtype: self.dtype(),
            shape: Cow::Borrowed(self.shape()),
            names: self.names().map(Cow::Borrowed),
            bytes: Bytes(little_endian(self.dtype(), self.bytes().into())),
        };
        wire.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for HostTensor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HostTensor, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        let bytes = little_endian(wire.dtype, wire.bytes.0);
        let tensor = HostTensor::from_bytes(wire.dtype, wire.shape.into_owned(), &bytes)
            .map_err(D::Error::custom)?;
        match wire.names {
            Some(names) => tensor.with_names(Some(names.into_owned())).map_err(D::Error::custom),
            None => Ok(tensor),
        }
    }
}

/// Converts between native byte order and little-endian, which is the same operation in both
/// directions.
fn little_endian(dtype: DType, bytes: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        return bytes;
    }
    // The parts of a complex number are swapped separately.
    let width = if dtype.is_complex() { dtype.size() / 2 } else { dtype.size() };
    let mut bytes = bytes.into_owned();
    bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    Cow::Owned(bytes)
}

/// Bytes that are written as such, and borrowed from the input if the format supports it.
struct Bytes<'a>(Cow<'a, [u8]>);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Bytes<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(BytesVisitor).map(Bytes)
    }
}

struct BytesVisitor;

impl<'de> Visitor<'de> for BytesVisitor {
    type Value = Cow<'de, [u8]>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(bytes))
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Cow::Owned(bytes.to_vec()))
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Self::Value, E> {
        Ok(Cow::Owned(bytes))
    }

    /// Text formats write bytes as a list of numbers.
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = items.next_element()? {
            bytes.push(byte);
        }
        Ok(Cow::Owned(bytes))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;
    use crate::Scalar;

    fn read(value: serde_json::Value) -> Result<HostTensor, String> {
        from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn tensors_of_every_dtype_round_trip() {
        for dtype in DType::ALL {
            for shape in [Shape::scalar(), Shape::from([2, 3]), Shape::from([0, 4])] {
                let tensor = HostTensor::full(Scalar::Float(1.0), dtype, shape).unwrap();
                let again = read(to_value(&tensor).unwrap()).unwrap();
                assert!(again.same_bits(&tensor), "{dtype}");
                assert_eq!((again.dtype(), again.shape()), (dtype, tensor.shape()));
            }
        }
    }

    #[test]
    fn names_round_trip() {
        let names = Names::from([Some("x"), None]);
        let tensor = HostTensor::from_slice(&[1_u16, 515], [1, 2]).unwrap();
        let tensor = tensor.with_names(Some(names.clone())).unwrap();
        let value = to_value(&tensor).unwrap();
        let expected = json!({
            "dtype": "U16", "shape": [1, 2], "names": ["x", null], "bytes": [1, 0, 3, 2]
        });
        assert_eq!(value, expected);
        assert_eq!(read(value).unwrap().names(), Some(&names));
    }

    #[test]
    fn invalid_bytes_are_rejected() {
        let tensor = |dtype: &str, shape: &[usize], bytes: &[u8]| {
            read(json!({ "dtype": dtype, "shape": shape, "names": null, "bytes": bytes }))
        };
        assert!(tensor("Pred", &[2], &[0, 1]).is_ok());
        assert!(tensor("Pred", &[2], &[0, 2]).is_err());
        assert!(tensor("U8", &[2], &[0]).is_err());
        assert!(tensor("U8", &[usize::MAX, 2], &[0]).is_err());
        let named = json!({ "dtype": "U8", "shape": [1], "names": [null, null], "bytes": [0] });
        assert!(read(named).is_err());
    }
}
