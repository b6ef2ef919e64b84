//! Signatures: what of a call decides which program runs.
//!
//! A signature is a flat list of words (dtype and shape of each leaf, the kinds and sizes of the
//! containers around them) and the static values. On a call whose signature is known, making it
//! is all the work there is in Python's terms, so it allocates little.

use std::hash::{Hash, Hasher};

use nxla_runtime::host::Names;
use nxla_runtime::{DType, Scalar, Tensor, TensorType, Vectors};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use crate::apply::number_tensor;
use crate::containers::{Kind, kind_of};
use crate::difference::LeafType;
use crate::dlpack;
use crate::errors::{OrRaise, argument_error, trace_error};
use crate::expr::PyExpr;
use crate::template::PyTemplate;
use crate::tensor::PyTensor;
use crate::value::number_of;

/// The flat form of a call.
#[derive(Default)]
pub(crate) struct Signature {
    words: SmallVec<[u64; 24]>,
    statics: SmallVec<[Py<PyAny>; 2]>,
    /// The leaves that are templates, and the data that they stand for.
    templates: Vec<(usize, TensorType)>,
    /// The leaves that have vectorized axes.
    vectors: Vec<(usize, Vectors)>,
    /// Whether there is anything but leaves.
    structured: bool,
}

/// Tensors of a call, in leaf order.
pub(crate) type Leaves = SmallVec<[Tensor; 8]>;

/// First words of the entries, above any dimension or length that follows.
#[derive(Clone, Copy)]
enum Tag {
    Leaf = 1,
    Static,
    Tuple,
    List,
    Dict,
    Named,
    Dataclass,
    Registered,
    Keyword,
    Vectors,
}

impl Signature {
    fn tag(&mut self, tag: Tag, rest: usize) {
        self.structured |= !matches!(tag, Tag::Leaf);
        self.words.push(((tag as u64) << 56) | rest as u64);
    }

    /// Whether the arguments are tensors, each by itself and passed by position.
    pub(crate) fn is_plain(&self) -> bool {
        !self.structured
    }

    /// Adds a word of the caller's own.
    pub(crate) fn word(&mut self, word: u64) {
        self.words.push(word);
    }

    /// Adds a tensor.
    fn leaf(&mut self, dtype: DType, dims: &[usize], names: Option<&Names>) {
        let named = usize::from(names.is_some());
        self.tag(Tag::Leaf, (dtype as usize) << 32 | dims.len() << 1 | named);
        self.words.extend(dims.iter().map(|&dim| dim as u64));
        for name in names.into_iter().flat_map(|names| names.iter()) {
            self.name(name.as_deref().unwrap_or(""));
        }
    }

    fn name(&mut self, name: &str) {
        self.words.push(name.len() as u64);
        for chunk in name.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.words.push(u64::from_le_bytes(word));
        }
    }

    /// Adds the vectorized axes of the next leaf, whose data has them in front.
    fn vectorized(&mut self, vectors: &Vectors, position: usize) {
        if vectors.is_empty() {
            return;
        }
        self.tag(Tag::Vectors, vectors.len());
        for axis in vectors.iter() {
            self.name(&axis.name);
        }
        self.vectors.push((position, vectors.clone()));
    }

    /// Adds a value that is part of the structure.
    pub(crate) fn constant(&mut self, value: &Bound<'_, PyAny>, path: &str) -> PyResult<()> {
        let hash = value.hash().map_err(|_| {
            let kind = value.get_type().to_string();
            argument_error(path, format!("a static value must be hashable, got {kind}"))
        })?;
        self.tag(Tag::Static, 0);
        self.words.push(hash as u64);
        self.statics.push(value.clone().unbind());
        Ok(())
    }

    /// Adds the name of a keyword argument.
    pub(crate) fn keyword(&mut self, name: &Bound<'_, PyAny>) -> PyResult<()> {
        self.tag(Tag::Keyword, 0);
        self.constant(name, "keyword")
    }

    /// Adds an argument and collects its tensors.
    pub(crate) fn argument<'py>(
        &mut self,
        value: &Bound<'py, PyAny>,
        leaves: &mut Leaves,
        path: &dyn Fn() -> String,
    ) -> PyResult<()> {
        if let Ok(tensor) = value.cast::<PyTensor>() {
            return self.tensor(tensor.get().get().clone(), leaves);
        }
        let py = value.py();
        match kind_of(value)? {
            Kind::Other => {
                if value.is_instance_of::<PyExpr>() {
                    return Err(trace_error(format!(
                        "{}: a traced value is passed to a compiled function; its trace is {}",
                        path(),
                        "over, or belongs to another function"
                    )));
                }
                if let Ok(template) = value.cast::<PyTemplate>() {
                    self.template(template.get(), leaves);
                    return Ok(());
                }
                if let Some(tensor) = leaf_tensor(value)? {
                    return self.tensor(tensor, leaves);
                }
                self.constant(value, &path())
            }
            Kind::Tuple(items) => {
                self.tag(Tag::Tuple, items.len());
                self.items(items.iter(), leaves, path)
            }
            Kind::List(items) => {
                self.tag(Tag::List, items.len());
                self.items(items.iter(), leaves, path)
            }
            Kind::Named(items) => {
                self.tag(Tag::Named, items.len());
                self.words.push(value.get_type().as_ptr() as u64);
                self.statics.push(value.get_type().into_any().unbind());
                self.items(items.iter(), leaves, path)
            }
            Kind::Dict(items) => {
                self.tag(Tag::Dict, items.len());
                for (key, item) in items {
                    self.constant(&key, &path())?;
                    self.argument(&item, leaves, &|| format!("{}[{key:?}]", path()))?;
                }
                Ok(())
            }
            Kind::Dataclass(fields) => {
                self.tag(Tag::Dataclass, fields.len());
                self.words.push(value.get_type().as_ptr() as u64);
                self.statics.push(value.get_type().into_any().unbind());
                for (name, item) in fields {
                    self.argument(&item, leaves, &|| format!("{}.{name}", path()))?;
                }
                Ok(())
            }
            Kind::Registered(items, aux, unflatten) => {
                self.tag(Tag::Registered, items.len());
                self.words.push(unflatten.as_ptr() as u64);
                self.statics.push(value.get_type().into_any().unbind());
                self.constant(aux.as_any(), &path())?;
                let _ = py;
                self.items(items.into_iter(), leaves, path)
            }
        }
    }

    fn items<'py>(
        &mut self,
        items: impl Iterator<Item = Bound<'py, PyAny>>,
        leaves: &mut Leaves,
        path: &dyn Fn() -> String,
    ) -> PyResult<()> {
        for (index, item) in items.enumerate() {
            self.argument(&item, leaves, &|| format!("{}[{index}]", path()))?;
        }
        Ok(())
    }

    fn tensor(&mut self, tensor: Tensor, leaves: &mut Leaves) -> PyResult<()> {
        self.vectorized(tensor.vectors(), leaves.len());
        let data = tensor.data();
        self.leaf(data.dtype(), data.shape(), data.names());
        leaves.push(if tensor.vectors().is_empty() { tensor } else { data.clone() });
        Ok(())
    }

    fn template(&mut self, template: &PyTemplate, leaves: &mut Leaves) {
        self.vectorized(&template.vectors, leaves.len());
        let ty = template.vectors.full_type(&template.ty);
        self.leaf(ty.dtype, &ty.shape, ty.names.as_ref());
        self.templates.push((leaves.len(), ty.clone()));
        // Nobody reads it; it keeps the leaves after it in their places.
        leaves.push(Tensor::scalar(Scalar::zero(ty.dtype), ty.dtype));
    }

    /// The types of all leaves.
    pub(crate) fn types(&self, leaves: &[Tensor]) -> Vec<TensorType> {
        let mut types: Vec<TensorType> = leaves.iter().map(Tensor::ty).collect();
        for (position, ty) in &self.templates {
            types[*position] = ty.clone();
        }
        types
    }

    /// The vectorized axes of all of so many leaves.
    pub(crate) fn vectors(&self, leaves: usize) -> Vec<Vectors> {
        let mut vectors = vec![Vectors::NONE; leaves];
        for (position, own) in &self.vectors {
            vectors[*position] = own.clone();
        }
        vectors
    }

    /// Refuses templates where data is needed.
    pub(crate) fn refuse_templates(&self, function: &str) -> PyResult<()> {
        match self.templates.first() {
            None => Ok(()),
            Some((_, ty)) => {
                let why = format!("the template {ty} has no data; compile and debug_expr take it");
                Err(argument_error(function, why))
            }
        }
    }

    /// A hash of everything.
    pub(crate) fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.words.hash(&mut hasher);
        hasher.finish()
    }

    /// Whether two signatures are equal; static values are compared by Python.
    pub(crate) fn matches(&self, py: Python<'_>, other: &Signature) -> PyResult<bool> {
        if self.words != other.words || self.statics.len() != other.statics.len() {
            return Ok(false);
        }
        for (left, right) in self.statics.iter().zip(&other.statics) {
            let (left, right) = (left.bind(py), right.bind(py));
            // 1, 1.0 and True are equal, but a function may tell them apart.
            let equal = left.is(right) || left.get_type().is(right.get_type()) && left.eq(right)?;
            if !equal {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A number or an array as a tensor; `None` for anything else.
fn leaf_tensor(value: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    if let Some(number) = number_of(value)? {
        return number_tensor(number, None).or_raise().map(Some);
    }
    Ok(dlpack::import(value, false)?.map(Tensor::from))
}

/// The type of a leaf, or of an entry of it, and its vectorized axes; `None` for what is none.
pub(crate) fn leaf_type(value: &Bound<'_, PyAny>) -> PyResult<Option<LeafType>> {
    if let Ok(tensor) = value.cast::<PyTensor>() {
        let tensor = tensor.get().get();
        return Ok(Some(LeafType { ty: tensor.ty(), vectors: tensor.vectors().clone() }));
    }
    if let Ok(template) = value.cast::<PyTemplate>() {
        let PyTemplate { ty, vectors } = template.get();
        return Ok(Some(LeafType { ty: ty.clone(), vectors: vectors.clone() }));
    }
    match is_leaf(value)? {
        true => {
            Ok(leaf_tensor(value)?
                .map(|tensor| LeafType { ty: tensor.ty(), vectors: Vectors::NONE }))
        }
        false => Ok(None),
    }
}

/// Whether a value is a leaf: a tensor, a template, a traced value, a number or an array.
pub(crate) fn is_leaf(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let quick = value.is_instance_of::<PyTensor>()
        || value.is_instance_of::<PyExpr>()
        || value.is_instance_of::<PyTemplate>()
        || value.is_instance_of::<PyFloat>()
        || value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyBool>()
        || value.is_instance_of::<PyComplex>();
    if quick {
        return Ok(true);
    }
    if value.is_none() || value.is_instance_of::<PyString>() {
        return Ok(false);
    }
    dlpack::is_array(value)
}
