//! The expansion of the derive macro.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::visit_mut::VisitMut;
use syn::{Data, DeriveInput, Error, Fields, GenericParam, Generics, Index, Member, Result, Type};
use syn::{TypePath, WherePredicate, parse_quote};

/// A field of the struct.
struct Field {
    member: Member,
    ty: Type,
    /// True if the field has a static value and no leaves.
    skipped: bool,
}

/// A parsed struct.
struct Struct<'a> {
    name: &'a Ident,
    generics: &'a Generics,
    fields: Vec<Field>,
    /// The type parameters that represent leaves, or containers of leaves.
    leaves: Vec<Ident>,
}

/// Generates the implementations of `Tree`, `Container` and `Arguments` for a struct.
///
/// # Errors
/// Returns an error if the input is not a struct, or is not generic in its leaves.
pub(crate) fn container(input: &DeriveInput) -> Result<TokenStream> {
    let parsed = Struct::of(input)?;
    let (tree, container) = (parsed.tree(), parsed.container());
    let (by_value, by_reference) = (parsed.arguments(false), parsed.arguments(true));
    Ok(quote! { #tree #container #by_value #by_reference })
}

impl<'a> Struct<'a> {
    fn of(input: &'a DeriveInput) -> Result<Self> {
        let name = &input.ident;
        let fields = match &input.data {
            Data::Struct(data) => fields(&data.fields)?,
            Data::Enum(_) => {
                return Err(Error::new_spanned(
                    name,
                    "an enum is not a container: a traced function is compiled for one structure, \
                     which would include the variant. Use a struct with `Option` fields, \
                     or mark a field that holds the enum with `#[container(skip)]`",
                ));
            }
            Data::Union(_) => {
                return Err(Error::new_spanned(name, "a union is not a container; use a struct"));
            }
        };
        if let Some(lifetime) = input.generics.lifetimes().next() {
            let why = "a container owns its leaves: functions take it by value";
            return Err(Error::new_spanned(lifetime, why));
        }
        let held = || fields.iter().filter(|field| !field.skipped);
        let used = |ident: &Ident| held().any(|field| mentions(&field.ty, ident));
        let parameters = input.generics.type_params().map(|parameter| &parameter.ident);
        let leaves: Vec<Ident> = parameters.filter(|ident| used(ident)).cloned().collect();
        if leaves.is_empty() && held().next().is_some() {
            let why = format!(
                "a container is generic in its leaves, which are expressions in a trace and tensors \
                 elsewhere: write `struct {name}<T>` with `T` for a tensor, or mark fields without \
                 tensors with `#[container(skip)]`"
            );
            return Err(Error::new_spanned(name, why));
        }
        let holds_leaves = |ty: &Type| leaves.iter().any(|ident| mentions(ty, ident));
        if let Some(field) = held().find(|field| !holds_leaves(&field.ty)) {
            let why = "a field without tensors must be marked with `#[container(skip)]`; its value is \
                       part of the signature of a call";
            return Err(Error::new_spanned(&field.ty, why));
        }
        if let Some(bound) = bound_of(&input.generics, &leaves) {
            let why = "the leaves of a container have no bounds in the struct, because they are \
                       expressions in a trace and tensors elsewhere; write bounds on functions and impls";
            return Err(Error::new_spanned(bound, why));
        }
        Ok(Self { name, generics: &input.generics, fields, leaves })
    }

    /// Returns the type of the struct with other leaves.
    fn of_leaves(&self, rename: &dyn Fn(&Ident) -> Type) -> TokenStream {
        let name = self.name;
        let parameters = self.generics.params.iter().map(|parameter| match parameter {
            GenericParam::Type(ty) if self.leaves.contains(&ty.ident) => {
                let ty = rename(&ty.ident);
                quote!(#ty)
            }
            GenericParam::Type(ty) => {
                let ident = &ty.ident;
                quote!(#ident)
            }
            GenericParam::Const(constant) => {
                let ident = &constant.ident;
                quote!(#ident)
            }
            _ => unreachable!("lifetimes are refused"),
        });
        quote!(#name<#(#parameters),*>)
    }

    /// Returns the type of a field in the struct with other leaves.
    fn field_of(&self, field: &Field, rename: &dyn Fn(&Ident) -> Type) -> Type {
        let mut ty = field.ty.clone();
        Rename { leaves: &self.leaves, rename }.visit_type_mut(&mut ty);
        ty
    }

    fn held(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| !field.skipped)
    }

    /// Returns the generics with additional leading parameters and without defaults.
    fn generics_with(&self, more: &[GenericParam]) -> Generics {
        let mut generics = self.generics.clone();
        generics.params = more.iter().cloned().chain(generics.params).collect();
        for parameter in generics.type_params_mut() {
            parameter.default = None;
        }
        let clause = generics.make_where_clause();
        for field in self.fields.iter().filter(|field| field.skipped) {
            let ty = &field.ty;
            clause.predicates.push(parse_quote!(#ty: ::nxla::StaticValue));
        }
        generics
    }

    fn tree(&self) -> TokenStream {
        let mut generics = self.generics_with(&[parse_quote!(__Leaf)]);
        let clause = generics.make_where_clause();
        for field in self.held() {
            let ty = &field.ty;
            clause.predicates.push(parse_quote!(#ty: ::nxla::Tree<__Leaf>));
        }
        let (impl_generics, _, clause) = generics.split_for_impl();
        let own = self.of_leaves(&|ident| parse_quote!(#ident));
        let name = self.name;
        let flatten = self.fields.iter().map(|Field { member, skipped, .. }| {
            if *skipped {
                quote!(leaves.push_static(&self.#member);)
            } else {
                quote!(::nxla::Tree::<__Leaf>::flatten(&self.#member, leaves);)
            }
        });
        let rebuild = self.fields.iter().map(|Field { member, skipped, .. }| {
            if *skipped {
                quote!(#member: leaves.next_static())
            } else {
                quote!(#member: ::nxla::Tree::<__Leaf>::rebuild(leaves))
            }
        });
        let skips = self.fields.iter().any(|field| field.skipped);
        let of_fields = self
            .held()
            .map(|Field { ty, .. }| quote!(|| <#ty as ::nxla::Tree<__Leaf>>::has_static_values()));
        let paths = self.held().map(|Field { member, .. }| {
            let at = match member {
                Member::Named(name) => format!("{{}}.{}", name.unraw()),
                Member::Unnamed(index) => format!("{{}}.{}", index.index),
            };
            quote!(::nxla::Tree::<__Leaf>::paths(&self.#member, &::std::format!(#at, at), paths);)
        });
        quote! {
            #[automatically_derived]
            #[allow(unused_variables, clippy::allow_attributes_without_reason)]
            impl #impl_generics ::nxla::Tree<__Leaf> for #own #clause {
                fn flatten(&self, leaves: &mut ::nxla::Leaves<__Leaf>) {
                    #(#flatten)*
                }

                fn rebuild(leaves: &mut ::nxla::Leaves<__Leaf>) -> Self {
                    #name { #(#rebuild),* }
                }

                fn has_static_values() -> bool {
                    #skips #(#of_fields)*
                }

                fn paths(&self, at: &str, paths: &mut ::std::vec::Vec<::std::string::String>) {
                    #(#paths)*
                }
            }
        }
    }

    fn container(&self) -> TokenStream {
        let tensors: &dyn Fn(&Ident) -> Type =
            &|ident| parse_quote!(<#ident as ::nxla::Container>::Tensors);
        let sharded: &dyn Fn(&Ident) -> Type =
            &|ident| parse_quote!(<#ident as ::nxla::Container>::Sharded);
        let mut generics = self.generics_with(&[]);
        let clause = generics.make_where_clause();
        for ident in &self.leaves {
            clause.predicates.push(parse_quote!(#ident: ::nxla::Container));
        }
        for field in self.held().filter(|field| !self.is_leaf(&field.ty)) {
            let ty = &field.ty;
            let (of_tensors, of_sharded) =
                (self.field_of(field, tensors), self.field_of(field, sharded));
            clause.predicates.push(
                parse_quote!(#ty: ::nxla::Container<Tensors = #of_tensors, Sharded = #of_sharded>),
            );
        }
        let (impl_generics, _, clause) = generics.split_for_impl();
        let own = self.of_leaves(&|ident| parse_quote!(#ident));
        let (of_tensors, of_sharded) = (self.of_leaves(tensors), self.of_leaves(sharded));
        let of_containers =
            self.of_leaves(&|ident| parse_quote!(<#ident as ::nxla::Container>::Of<__Each>));
        quote! {
            #[automatically_derived]
            impl #impl_generics ::nxla::Container for #own #clause {
                type Tensors = #of_tensors;
                type Sharded = #of_sharded;
                type Of<__Each: ::nxla::Container> = #of_containers;
            }
        }
    }

    /// Returns whether a type is one of the type parameters.
    fn is_leaf(&self, ty: &Type) -> bool {
        let Type::Path(TypePath { qself: None, path, .. }) = ty else { return false };
        path.get_ident().is_some_and(|ident| self.leaves.contains(ident))
    }

    /// Generates the implementation of `Arguments`: values that are accepted for the struct.
    fn arguments(&self, by_reference: bool) -> TokenStream {
        let given_name = |ident: &Ident| format_ident!("__Given{ident}");
        let given: &dyn Fn(&Ident) -> Type = &|ident| {
            let name = given_name(ident);
            parse_quote!(#name)
        };
        let mut more: Vec<GenericParam> = vec![parse_quote!(__Leaf)];
        if by_reference {
            more.insert(0, parse_quote!('__given));
        }
        let mut generics = self.generics_with(&more);
        for ident in &self.leaves {
            let name = given_name(ident);
            generics.params.push(parse_quote!(#name));
        }
        let lifetime = by_reference.then(|| quote!(&'__given));
        let clause = generics.make_where_clause();
        for field in self.held() {
            let (ty, passed) = (&field.ty, self.field_of(field, given));
            let bound = parse_quote!(#lifetime #passed: ::nxla::Arguments<#ty, __Leaf>);
            clause.predicates.push(bound);
        }
        let (impl_generics, _, clause) = generics.split_for_impl();
        let own = self.of_leaves(&|ident| parse_quote!(#ident));
        let passed = self.of_leaves(given);
        let append = self.fields.iter().map(|field| {
            let (member, ty) = (&field.member, &field.ty);
            if field.skipped {
                quote!(leaves.push_static(&self.#member);)
            } else {
                let borrow = by_reference.then(|| quote!(&));
                quote! {
                    ::nxla::Arguments::<#ty, __Leaf>::append(#borrow self.#member, leaves);
                }
            }
        });
        quote! {
            #[automatically_derived]
            #[allow(unused_variables, clippy::allow_attributes_without_reason)]
            impl #impl_generics ::nxla::Arguments<#own, __Leaf> for #lifetime #passed #clause {
                fn append(self, leaves: &mut ::nxla::Leaves<__Leaf>) {
                    #(#append)*
                }
            }
        }
    }
}

fn fields(fields: &Fields) -> Result<Vec<Field>> {
    let parsed = fields.iter().enumerate().map(|(at, field)| {
        let mut skipped = false;
        for attribute in field.attrs.iter().filter(|attr| attr.path().is_ident("container")) {
            attribute.parse_nested_meta(|meta| {
                if !meta.path.is_ident("skip") {
                    let why =
                        "the only attribute is `#[container(skip)]`, for a field without tensors";
                    return Err(meta.error(why));
                }
                skipped = true;
                Ok(())
            })?;
        }
        let member = match &field.ident {
            Some(name) => Member::Named(name.clone()),
            None => Member::Unnamed(Index::from(at)),
        };
        Ok(Field { member, ty: field.ty.clone(), skipped })
    });
    parsed.collect()
}

/// Returns whether a type contains a type parameter.
fn mentions(ty: &Type, ident: &Ident) -> bool {
    let mut mentions = Mentions { ident, found: false };
    mentions.visit_type_mut(&mut ty.clone());
    mentions.found
}

/// A visitor that looks for a type parameter. It changes nothing, but `syn` is already compiled
/// with mutable visitors for other macros of the workspace.
struct Mentions<'a> {
    ident: &'a Ident,
    found: bool,
}

impl VisitMut for Mentions<'_> {
    fn visit_type_path_mut(&mut self, ty: &mut TypePath) {
        self.found |= ty.path.segments.first().is_some_and(|first| first.ident == *self.ident);
        syn::visit_mut::visit_type_path_mut(self, ty);
    }
}

/// A visitor that replaces type parameters by other types.
struct Rename<'a> {
    leaves: &'a [Ident],
    rename: &'a dyn Fn(&Ident) -> Type,
}

impl VisitMut for Rename<'_> {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        if let Type::Path(TypePath { qself: None, path, .. }) = ty
            && let Some(ident) = path.get_ident().filter(|ident| self.leaves.contains(ident))
        {
            *ty = (self.rename)(ident);
            return;
        }
        syn::visit_mut::visit_type_mut(self, ty);
    }
}

/// Returns a bound on one of these type parameters.
fn bound_of<'a>(generics: &'a Generics, parameters: &[Ident]) -> Option<&'a dyn ToTokens> {
    let own = generics.type_params().filter(|parameter| parameters.contains(&parameter.ident));
    let inline = own.flat_map(|parameter| &parameter.bounds).next();
    let bounds = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let mut separate = bounds.filter(|predicate| match predicate {
        WherePredicate::Type(bound) => {
            parameters.iter().any(|ident| mentions(&bound.bounded_ty, ident))
        }
        _ => false,
    });
    inline.map(|bound| bound as _).or_else(|| separate.next().map(|bound| bound as _))
}
