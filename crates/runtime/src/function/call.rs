//! Calls: the signature that selects a program, and the tensors that it runs on.
//!
//! A signature is a flat list of tokens (dtype and shape of each leaf, kinds and sizes of their
//! containers) and the static values. Building it is the whole cost of a repeated call, so it
//! allocates little.

use std::convert::Infallible;
use std::hash::{Hash, Hasher};

use nxla_expr::TensorType;
use nxla_tensor::{DType, Names, Scalar};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::tensor::RawTensor;
use crate::vectors::VectorAxes;

/// Tensors of a call, in leaf order.
pub type Inputs = SmallVec<[RawTensor; 8]>;

/// A value that is part of a signature, in the terms of a language.
pub trait Static {
    /// Returns `true` if a function may treat the two alike.
    ///
    /// # Errors
    /// Returns the error of a failed comparison.
    fn same(&self, other: &Self) -> Result<bool>;
}

/// A language without static values.
impl Static for Infallible {
    fn same(&self, _: &Self) -> Result<bool> {
        match *self {}
    }
}

/// The part of a call that selects the program.
#[derive(Debug)]
pub struct Signature<S> {
    tokens: SmallVec<[u64; 24]>,
    statics: SmallVec<[S; 2]>,
}

impl<S: Static> Signature<S> {
    /// Returns `true` if two signatures are equal.
    ///
    /// # Errors
    /// Returns the error of a failed comparison of static values.
    pub fn matches(&self, other: &Signature<S>) -> Result<bool> {
        if self.tokens != other.tokens || self.statics.len() != other.statics.len() {
            return Ok(false);
        }
        for (left, right) in self.statics.iter().zip(&other.statics) {
            if !left.same(right)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.tokens.hash(&mut hasher);
        hasher.finish()
    }

    /// The static values.
    pub fn statics(&self) -> &[S] {
        &self.statics
    }
}

/// The builder of a call: the front end walks over the arguments and reports each value.
#[derive(Debug)]
pub struct Call<S> {
    pub(super) signature: Signature<S>,
    pub(super) inputs: Inputs,
    /// The leaves that are templates, and their types.
    templates: Vec<(usize, TensorType)>,
    /// The templates whose data follows if the program needs it.
    deferred: Vec<usize>,
    /// The leaves that have vectorized axes.
    vectors: Vec<(usize, VectorAxes)>,
    /// Set if the arguments contain more than leaves.
    structured: bool,
}

impl<S> Default for Call<S> {
    fn default() -> Self {
        Self {
            signature: Signature { tokens: SmallVec::new(), statics: SmallVec::new() },
            inputs: Inputs::new(),
            templates: Vec::new(),
            deferred: Vec::new(),
            vectors: Vec::new(),
            structured: false,
        }
    }
}

/// The kind of an entry: the high bits of its first token, above any dimension or length that follows.
#[derive(Clone, Copy)]
enum Tag {
    Leaf = 1,
    Static,
    Vectors,
    /// The first kind of containers; front ends number the kinds from 0.
    Container,
}

impl<S> Call<S> {
    fn push_tag(&mut self, tag: u64, rest: u64) {
        self.signature.tokens.push(tag << 56 | rest);
    }

    /// Begins a container with `children` children. The front end numbers the kinds of containers.
    pub fn container(&mut self, kind: u8, children: usize) {
        self.structured = true;
        self.push_tag(Tag::Container as u64 + u64::from(kind), children as u64);
    }

    /// Adds a value that is part of the signature, with its hash.
    pub fn push_static(&mut self, value: S, hash: u64) {
        self.structured = true;
        self.push_tag(Tag::Static as u64, 0);
        self.signature.tokens.push(hash);
        self.signature.statics.push(value);
    }

    /// Adds a tensor.
    pub fn tensor(&mut self, tensor: RawTensor) {
        self.push_vectors(tensor.vectors());
        let data = tensor.data();
        self.push_leaf(data.dtype(), data.shape(), data.names());
        self.inputs.push(if tensor.vectors().is_empty() { tensor } else { data.clone() });
    }

    /// Adds a template of a tensor; with vectorized axes, `entry` is the type of one entry.
    pub fn template(&mut self, entry: &TensorType, vectors: &VectorAxes) {
        self.push_vectors(vectors);
        let ty = vectors.full_type(entry);
        self.push_leaf(ty.dtype, &ty.shape, ty.names.as_ref());
        self.templates.push((self.inputs.len(), ty.clone()));
        // A placeholder that is never read keeps the positions of later leaves.
        self.inputs.push(RawTensor::scalar(Scalar::zero(ty.dtype), ty.dtype));
    }

    /// Adds a tensor of a type whose data is supplied after the program is known, and returns its
    /// position among the inputs.
    pub fn defer(&mut self, entry: &TensorType, vectors: &VectorAxes) -> usize {
        let position = self.inputs.len();
        self.template(entry, vectors);
        self.deferred.push(position);
        position
    }

    fn push_leaf(&mut self, dtype: DType, dims: &[usize], names: Option<&Names>) {
        let (rank, named) = (dims.len() as u64, u64::from(names.is_some()));
        self.push_tag(Tag::Leaf as u64, (dtype as u64) << 32 | rank << 1 | named);
        self.signature.tokens.extend(dims.iter().map(|&dim| dim as u64));
        for name in names.into_iter().flat_map(|names| names.iter()) {
            self.push_name(name.as_deref().unwrap_or(""));
        }
    }

    fn push_name(&mut self, name: &str) {
        self.signature.tokens.push(name.len() as u64);
        for chunk in name.as_bytes().chunks(8) {
            let mut token = [0; 8];
            token[..chunk.len()].copy_from_slice(chunk);
            self.signature.tokens.push(u64::from_le_bytes(token));
        }
    }

    /// Adds the vectorized axes of the next leaf, whose data has them in front.
    fn push_vectors(&mut self, vectors: &VectorAxes) {
        if vectors.is_empty() {
            return;
        }
        self.structured = true;
        self.push_tag(Tag::Vectors as u64, vectors.len() as u64);
        for axis in vectors.iter() {
            self.push_name(&axis.name);
        }
        self.vectors.push((self.inputs.len(), vectors.clone()));
    }

    /// The tensors, in leaf order.
    pub fn inputs(&self) -> &[RawTensor] {
        &self.inputs
    }

    /// The tensors alone.
    pub fn into_inputs(self) -> Inputs {
        self.inputs
    }

    /// The signature alone.
    pub fn into_signature(self) -> Signature<S> {
        self.signature
    }

    /// The signature.
    pub fn signature(&self) -> &Signature<S> {
        &self.signature
    }

    /// Returns `true` if every argument is a tensor.
    pub(super) fn is_plain(&self) -> bool {
        !self.structured && self.templates.is_empty()
    }

    /// The types of all leaves, vectorized axes in front.
    pub fn types(&self) -> Vec<TensorType> {
        let mut types: Vec<TensorType> = self.inputs.iter().map(RawTensor::ty).collect();
        for (position, ty) in &self.templates {
            types[*position] = ty.clone();
        }
        types
    }

    /// The vectorized axes of all leaves.
    pub fn vectors(&self) -> Vec<VectorAxes> {
        let mut vectors = vec![VectorAxes::NONE; self.inputs.len()];
        for (position, own) in &self.vectors {
            vectors[*position] = own.clone();
        }
        vectors
    }

    /// Checks that all leaves have data.
    ///
    /// # Errors
    /// Returns an error if a leaf is a template.
    pub fn refuse_templates(&self, function: &str) -> Result<()> {
        match self.templates.iter().find(|(position, _)| !self.deferred.contains(position)) {
            None => Ok(()),
            Some((_, ty)) => {
                let why = format!(
                    "arguments: must have data; got the template {ty}, which only \
                                   compile and debug_expr accept"
                );
                Err(Error::Arguments { function: function.into(), why })
            }
        }
    }
}
