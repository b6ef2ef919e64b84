//! Files of NumPy and safetensors. The expected bytes were written by `numpy.save`,
//! `numpy.savez_compressed` and `safetensors.numpy.save`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use nxla::prelude::*;
use nxla::{Error, ErrorClass, Scalar, io};

/// `w = [[1.5, -2.0]]` and `b = zeros(100, "u1")`, compressed.
const NPZ: &str = "504b03042d00000008000000210075d8b17effffffffffffffff05001400772e6e7079010010009000\
    0000000000004f000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a1aea3a09e965f545294\
    98179f5f94920a12774bcc294e058a17672416a402f91a863a0a469a3a0ab50a64032e0630f8610fa1190e0000504b03\
    042d00000008000000210006e20cd6ffffffffffffffff05001400622e6e707901001000e40000000000000049000000\
    000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a05e536aa8aea3a09e965f54529498179f5f94920a12774b\
    cc294e058a17672416a402f91a8606063a9a3a0ab50a64032e063a0000504b01022d032d00000008000000210075d8b1\
    7e4f00000090000000050000000000000000000000800100000000772e6e7079504b01022d032d000000080000002100\
    06e20cd649000000e4000000050000000000000000000000800186000000622e6e7079504b0506000000000200020066\
    000000060100000000";

/// `w = [1.5, -2.0]` of `f32` and `n = 7` of `s64`, with the metadata `{"format": "pt"}`.
const SAFETENSORS: &str = "90000000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a227074\
    227d2c226e223a7b226474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a\
    5b302c385d7d2c2277223a7b226474797065223a22463332222c227368617065223a5b325d2c22646174615f6f666673\
    657473223a5b382c31365d7d7d20202020202007000000000000000000c03f000000c0";

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).map(|pair| str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// Returns a file of version 1 with this header and these elements.
fn npy(header: &str, elements: &[u8]) -> Vec<u8> {
    let length = u16::try_from(header.len()).unwrap();
    [&b"\x93NUMPY\x01\x00"[..], &length.to_le_bytes(), header.as_bytes(), elements].concat()
}

fn header(descr: &str, order: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}")
}

/// A temporary folder, which is removed at the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("nxla-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // A folder that is left behind does not make the test fail.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[derive(Container, Clone)]
struct Layer<T> {
    weights: T,
    bias: Option<T>,
    #[container(skip)]
    rate: f32,
}

#[test]
fn npy_files_match_numpy_bytes() {
    let x = Tensor::new((0..6).collect::<Vec<i32>>(), [2, 3]).unwrap();
    let text = header("'<i4'", "False", "(2, 3)");
    let written = npy(&format!("{text:<117}\n"), x.to_host().unwrap().bytes());
    assert_eq!(io::to_npy(&x).unwrap(), written);
    let read = io::from_npy(&written).unwrap();
    assert_eq!((read.ty(), read.to_vec::<i32>().unwrap()), (x.ty(), vec![0, 1, 2, 3, 4, 5]));
}

#[test]
fn supported_dtypes_round_trip_in_each_format() {
    for dtype in DType::ALL {
        let x = Tensor::from([[0.0f32, 1.0, 1.0]]).as_type(dtype).unwrap();
        let narrow = [DType::U2, DType::U4, DType::S2, DType::S4].contains(&dtype);
        let only_safe = [DType::F8E5M2, DType::F8E4M3FN, DType::BF16].contains(&dtype);
        let none = BTreeMap::new();
        let results = [
            (io::to_npy(&x).and_then(|data| io::from_npy(&data)), narrow || only_safe),
            (
                io::to_npz(&x).and_then(|data| Ok(io::from_npz(&data)?["tensor"].clone())),
                narrow || only_safe,
            ),
            (
                io::to_safetensors(&x, &none)
                    .and_then(|data| Ok(io::from_safetensors(&data)?["tensor"].clone())),
                narrow || dtype == DType::C128,
            ),
        ];
        for (at, (result, is_unsupported)) in results.into_iter().enumerate() {
            match result {
                Ok(y) => {
                    assert!(!is_unsupported, "{dtype} in format {at}");
                    assert_eq!(y.ty(), x.ty(), "format {at}");
                    assert_eq!(y.to_host().unwrap().bytes(), x.to_host().unwrap().bytes());
                }
                Err(error) => {
                    assert!(is_unsupported, "{dtype} in format {at}: {error}");
                    let expected = format!("dtype must exist in the format; got {dtype}");
                    let numpy = format!("dtype must exist in NumPy; got {dtype}");
                    let text = error.to_string();
                    assert!(text.ends_with(&expected) || text.ends_with(&numpy), "{text}");
                }
            }
        }
    }
}

#[test]
fn big_endian_and_fortran_order_files_are_read() {
    let big = npy(&header("'>i2'", "False", "(2,)"), &[1, 2, 0xff, 0xfe]);
    assert_eq!(io::from_npy(&big).unwrap().to_vec::<i16>().unwrap(), [0x0102, -2]);
    let complex = npy(
        &header("'>c8'", "False", "()"),
        &[1.5f32.to_be_bytes(), (-2.0f32).to_be_bytes()].concat(),
    );
    let complex = io::from_npy(&complex).unwrap().to_host().unwrap();
    assert_eq!(complex.get(0), Scalar::Complex(1.5, -2.0));
    let fortran = npy(&header("'|u1'", "True", "(2, 3)"), &[1, 4, 2, 5, 3, 6]);
    let fortran = io::from_npy(&fortran).unwrap();
    assert_eq!(fortran.shape()[..], [2, 3]);
    assert_eq!(fortran.to_vec::<u8>().unwrap(), [1, 2, 3, 4, 5, 6]);
    let text = header("'|b1'", "False", "()");
    let length = u32::try_from(text.len()).unwrap().to_le_bytes();
    let second = [&b"\x93NUMPY\x02\x00"[..], &length, text.as_bytes(), &[1]].concat();
    assert!(io::from_npy(&second).unwrap().item::<bool>().unwrap());
}

#[test]
fn corrupt_npy_files_are_format_errors() {
    let of = |shape: &str| header("'<f4'", "False", shape);
    let cases = [
        (Vec::new(), "at byte 0, expected the start of a file of NumPy"),
        (b"\x93NUMPY\x07\x00".to_vec(), "at byte 6, expected a version"),
        (npy(&of("(3,)"), &[])[..20].to_vec(), "at byte 8, expected a header of at most 10 bytes"),
        (npy("__import__('os').abort()", &[]), "at byte 10, expected a header"),
        (npy(&of("(1 << 40,)"), &[]), "at byte 10, expected a header"),
        (npy(&of("(-3,)"), &[]), "at byte 10, expected a header"),
        (npy(&of("(3)"), &[0; 12]), "at byte 10, expected a header"),
        (npy(&of("[3]"), &[0; 12]), "at byte 10, expected a header"),
        (npy(&of("(1,,)"), &[0; 4]), "at byte 10, expected a header"),
        (npy(&header("'<f4'", "3", "(1,)"), &[0; 4]), "at byte 10, expected a header"),
        (npy("{'descr': '<f4', 'descr': '<f4', 'shape': ()}", &[0; 4]), "expected a header"),
        (npy("{'descr': '<f4', 'shape': ()}", &[0; 4]), "at byte 10, expected a header"),
        (npy(&of("(1099511627776,)"), &[]), "expected 4398046511104 bytes of elements; got 0"),
        (npy(&of("(99999999999, 99999999999)"), &[]), "expected fewer bytes of elements; got 0"),
        (npy(&of("(3,)"), &[0; 11]), "expected 12 bytes of elements; got 11"),
        (npy(&of("(3,)"), &[0; 13]), "expected 12 bytes of elements; got 13"),
        (npy(&header("'|O'", "False", "()"), &[0; 8]), "a dtype that exists in nxla; got \"|O\""),
        (npy(&header("'|b1'", "False", "(1,)"), &[7]), "got 0x07 at index 0"),
    ];
    for (data, expected) in cases {
        let error = io::from_npy(&data).expect_err(expected);
        assert_eq!(error.class(), ErrorClass::Format, "{error}");
        assert!(error.to_string().contains(expected), "{error}, not {expected}");
    }
    for length in 0..128 {
        let data = io::to_npy(&Tensor::from([1.0f32])).unwrap();
        assert!(io::from_npy(&data[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn npz_archives_are_read_and_checked() {
    let data = unhex(NPZ);
    let read = io::from_npz(&data).unwrap();
    assert_eq!(read["w"].to_vec::<f64>().unwrap(), [1.5, -2.0]);
    assert_eq!(read["b"].to_vec::<u8>().unwrap(), [0; 100]);
    for at in 0..data.len() {
        let error = io::from_npz(&data[..at]).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Format, "{error}");
    }
    let mut wrong = data.clone();
    wrong[60] ^= 1;
    let error = io::from_npz(&wrong).unwrap_err().to_string();
    assert!(error.starts_with("from_npz: member \"w\": the archive is damaged: "), "{error}");
}

#[test]
fn safetensors_files_match_reference_bytes() {
    let data = unhex(SAFETENSORS);
    let read = io::from_safetensors(&data).unwrap();
    assert_eq!(read["w"].to_vec::<f32>().unwrap(), [1.5, -2.0]);
    assert_eq!(read["n"].item::<i64>().unwrap(), 7);
    let metadata = BTreeMap::from([("format".to_owned(), "pt".to_owned())]);
    assert_eq!(io::to_safetensors(&read, &metadata).unwrap(), data);
    for at in 0..data.len() {
        let error = io::from_safetensors(&data[..at]).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Format, "{error}");
    }
    let reserved = BTreeMap::from([("__metadata__".to_owned(), Tensor::from(1))]);
    let error = io::to_safetensors(&reserved, &metadata).unwrap_err().to_string();
    assert!(error.contains("is reserved by the format"), "{error}");
}

#[test]
fn tensor_names_are_paths_and_keep_all_characters() {
    let keys = ["plain", "a.b", "[0]", "\"]", "\\", "ü\u{e000}\n", ""];
    let tensors: BTreeMap<String, Tensor> =
        keys.iter().map(|key| ((*key).to_owned(), Tensor::from(1))).collect();
    let read = io::from_npz(&io::to_npz(&tensors).unwrap()).unwrap();
    assert_eq!(read.keys().collect::<Vec<_>>(), tensors.keys().collect::<Vec<_>>());
    let layer = Layer { weights: Tensor::from(1), bias: Some(Tensor::from(2)), rate: 0.5 };
    let nested = (vec![layer.clone()], BTreeMap::from([(3, layer)]));
    let names: Vec<String> =
        io::from_npz(&io::to_npz(&nested).unwrap()).unwrap().into_keys().collect();
    assert_eq!(names, ["0.0.bias", "0.0.weights", "1.3.bias", "1.3.weights"]);
    let nested = BTreeMap::from([
        ("x".to_owned(), BTreeMap::from([("y.z".to_owned(), Tensor::from(1))])),
        ("x.y".to_owned(), BTreeMap::from([("z".to_owned(), Tensor::from(1))])),
    ]);
    let error = io::to_npz(&nested).unwrap_err().to_string();
    assert!(error.contains("names of tensors must be unique; got \"x.y.z\" twice"), "{error}");
}

#[test]
fn load_into_requires_the_same_structure() {
    let folder = Temporary::new("containers");
    let layer = |bias: Option<f32>| Layer {
        weights: Tensor::from([[1.0f32, 2.0]]).with_names(["in", "out"]).unwrap(),
        bias: bias.map(Tensor::from),
        rate: 0.25,
    };
    for name in ["model.npz", "model.safetensors", "model.NPZ"] {
        let file = folder.file(name);
        io::save(&file, &[layer(Some(3.0))]).unwrap();
        let [read] = io::load_into(&file, &[layer(Some(0.0))]).unwrap();
        assert_eq!((read.weights.ty(), read.rate), (layer(None).weights.ty(), 0.25));
        assert_eq!(read.bias.unwrap().item::<f32>().unwrap(), 3.0);
        let missing = Layer { weights: Tensor::from(1), ..layer(None) };
        let cases = [
            (
                io::load_into(&file, &[layer(None)]).map(drop),
                "of the container only; got \"0.bias\"",
            ),
            (
                io::load_into(&file, &vec![layer(None); 2]).map(drop),
                "must contain a tensor \"1.weights\"",
            ),
            (
                io::load_into(&file, &[missing]).map(drop),
                "\"0.weights\": must be s32; got f32[1][2]",
            ),
        ];
        for (result, expected) in cases {
            let error = result.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Argument);
            let start = format!("load_into: {}: ", file.display());
            assert!(error.to_string().starts_with(&start), "{error}");
            assert!(error.to_string().contains(expected), "{error}, not {expected}");
        }
    }
    let names: Vec<_> = std::fs::read_dir(&folder.0).unwrap().collect();
    assert_eq!(names.len(), 3, "no part of a file is left: {names:?}");
}

#[test]
fn file_errors_name_function_and_path() {
    let folder = Temporary::new("errors");
    let error = io::load(folder.file("none.npy")).unwrap_err();
    let Error::File { error: cause, .. } = &error else { panic!("{error}") };
    assert_eq!(cause.kind(), std::io::ErrorKind::NotFound);
    assert!(error.to_string().starts_with("load: ") && error.to_string().contains("none.npy: "));
    let error = io::load_into(folder.file("none.npy"), &Tensor::from(1)).unwrap_err();
    assert!(error.to_string().starts_with("load_into: "), "{error}");
    let error = io::save(folder.file("no/folder.npy"), &Tensor::from(1)).unwrap_err();
    assert!(error.to_string().starts_with("save: ") && error.to_string().contains("folder.npy: "));
    let file = folder.file("damaged.npz");
    std::fs::write(&file, b"nothing").unwrap();
    let error = io::load(&file).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Format);
    let expected = format!("load: {}: from_npz: the archive is damaged", file.display());
    assert!(error.to_string().starts_with(&expected), "{error}");
    for name in ["model.pt", "model"] {
        let expected = "file: name must end with .npy, .npz or .safetensors; got ";
        for result in [io::load(name).map(drop), io::save(name, &Tensor::from(1))] {
            assert!(result.unwrap_err().to_string().contains(expected));
        }
    }
    let error = io::save(folder.file("pair.npy"), &[Tensor::from(1)]).unwrap_err().to_string();
    assert_eq!(
        error,
        "save: container: must be one tensor for a .npy file; use .npz for a container"
    );
}
