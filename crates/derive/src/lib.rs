//! `#[derive(nxla::Container)]`: structs as containers of what traced functions take and give.
//!
//! The crate `nxla` re-exports it, and has the traits that it implements.
#![forbid(unsafe_code)]

mod expand;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a container of a struct, so that traced functions take and give it.
///
/// The struct is generic in its leaves, which are expressions inside of a trace and tensors outside:
/// `struct Layer<T>` holds `T`, or containers of it, such as `Vec<T>` and `Option<T>`. Several
/// parameters stand for several containers, as in `struct Adam<C, T> { mean: C, step: T }`.
///
/// `#[container(skip)]` tells a field apart that holds no tensor. Its value is part of what a
/// function is traced for: another one traces the function again. It can be whatever is
/// `Clone + PartialEq + Debug + Send + Sync + 'static`.
#[proc_macro_derive(Container, attributes(container))]
pub fn container(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::container(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
