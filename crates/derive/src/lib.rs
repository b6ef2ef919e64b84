//! The derive macro `#[derive(nxla::Container)]`, which makes structs containers for traced
//! functions.
//!
//! The crate `nxla` re-exports the macro and defines the traits that it implements.
#![forbid(unsafe_code)]

mod expand;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct a container, which traced functions accept and return.
///
/// The struct is generic in its leaves, which are expressions inside a trace and tensors outside:
/// `struct Layer<T>` holds `T`, or containers of it such as `Vec<T>` and `Option<T>`. Several type
/// parameters represent several containers, as in `struct Adam<C, T> { mean: C, step: T }`.
///
/// `#[container(skip)]` marks a field without tensors. Its value is part of the signature of a
/// call, so another value causes another trace. The field type must be `Clone + PartialEq + Debug +
/// Send + Sync + 'static`.
#[proc_macro_derive(Container, attributes(container))]
pub fn container(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::container(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
