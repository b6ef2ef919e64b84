//! The search for the operation that produced NaN or an infinity.

use nxla_tensor::{DType, HostTensor};

use crate::context::{Fault, NotFinite};

/// The first element that is not finite: its index, and its printed value.
pub fn first_not_finite(tensor: &HostTensor) -> Option<(Vec<usize>, String)> {
    Some(describe_element(tensor, position(tensor)?))
}

/// The first element that is NaN, or has a NaN part: its index, and its printed value.
pub fn first_nan(tensor: &HostTensor) -> Option<(Vec<usize>, String)> {
    // A tensor whose elements are all finite has no NaN, and needs no second search.
    let first = position(tensor)?;
    let is_nan = |at: &usize| {
        let (re, im) = tensor.get(*at).parts();
        re.is_nan() || im.is_nan()
    };
    Some(describe_element(tensor, (first..tensor.size()).find(is_nan)?))
}

fn describe_element(tensor: &HostTensor, position: usize) -> (Vec<usize>, String) {
    let (re, im) = tensor.get(position).parts();
    let value = match tensor.dtype() {
        DType::C64 | DType::C128 if im.is_sign_negative() => format!("{re}-{}i", im.abs()),
        DType::C64 | DType::C128 => format!("{re}+{im}i"),
        _ => re.to_string(),
    };
    (tensor.shape().index_at(position), value)
}

fn position(tensor: &HostTensor) -> Option<usize> {
    let dtype = tensor.dtype();
    match dtype {
        DType::F32 => tensor.as_slice::<f32>().ok()?.iter().position(|x| !x.is_finite()),
        DType::F64 => tensor.as_slice::<f64>().ok()?.iter().position(|x| !x.is_finite()),
        _ if !dtype.is_float() && !dtype.is_complex() => None,
        _ => (0..tensor.size()).find(|&at| {
            let (re, im) = tensor.get(at).parts();
            !re.is_finite() || !im.is_finite()
        }),
    }
}

/// Returns an error for results that are not finite.
pub(crate) fn check(results: &[HostTensor]) -> Result<(), Fault> {
    for result in results {
        if let Some((index, value)) = first_not_finite(result) {
            let (dtype, shape) = (result.dtype(), result.shape().clone());
            return Err(Fault::NotFinite(Box::new(NotFinite { value, index, dtype, shape })));
        }
    }
    Ok(())
}
