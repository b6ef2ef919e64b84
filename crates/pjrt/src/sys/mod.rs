//! The PJRT C API as Rust declarations: the only description of foreign memory in this crate.
//!
//! Written by hand from `pjrt_c_api.h` 0.81 and kept in the repository, so that building needs
//! neither a C compiler nor libclang. Names equal the names of the header, so that its comments can
//! be looked up. The table of functions lists every slot, because offsets count; argument structs
//! are declared only for the functions that are called.
//!
//! Three rules of the API shape these declarations:
//! * Every struct starts with `struct_size`. The callee compares it with what it knows; the number
//!   is the end of the last field, *not* `size_of`, so that trailing padding can never be mistaken
//!   for a field of a newer version ([`CStruct::STRUCT_SIZE`]).
//! * New fields and functions are only ever appended. A table that is shorter than ours ends
//!   early, so [`PJRT_Api`] is never dereferenced as a whole: [`PJRT_Api::copy_from`] copies what
//!   is there and leaves the missing functions empty.
//! * A C enum is an `int`, and any value can come back; enums are therefore plain integers here.

#![allow(
    non_camel_case_types,
    non_snake_case,
    reason = "the names of pjrt_c_api.h are kept, so that they can be searched for there"
)]

mod api;
mod args;
mod ffi;

use std::ffi::c_void;

pub(crate) use api::*;
pub(crate) use args::*;
pub(crate) use ffi::*;

/// A `#[repr(C)]` struct that starts with its own `struct_size` and is valid when all its other
/// bytes are zero.
///
/// # Safety
/// Implementors are `#[repr(C)]`, their first field is `struct_size: usize`, and every field
/// accepts the all-zero bit pattern (integers, `bool`, raw pointers, optional functions).
pub(crate) unsafe trait CStruct: Sized {
    /// The offset of the end of the last field, which C callers pass as `struct_size`.
    const STRUCT_SIZE: usize;

    /// The struct with every field zero or null, and `struct_size` filled in.
    fn new() -> Self {
        // SAFETY: implementors accept the all-zero bit pattern in every field.
        let mut value: Self = unsafe { std::mem::MaybeUninit::zeroed().assume_init() };
        // SAFETY: `#[repr(C)]` puts the first field, `struct_size: usize`, at the address of the
        // struct itself.
        unsafe { (&raw mut value).cast::<usize>().write(Self::STRUCT_SIZE) };
        value
    }
}

/// The arguments of one function; they name the function they belong to, so that a slot cannot be
/// called with the arguments of another.
pub(crate) trait Args: CStruct {
    /// The name of the function, for messages.
    const FUNCTION: &'static str;

    /// The function, if the plugin is new enough to have it.
    fn slot(api: &PJRT_Api) -> Slot<Self>;
}

/// An entry of the function table.
pub(crate) type Slot<A> = Option<unsafe extern "C" fn(args: *mut A) -> *mut PJRT_Error>;

/// An entry that is declared for its offset only.
pub(crate) type Unused = *const c_void;

/// Declares a `#[repr(C)]` struct that starts with `struct_size` and `extension_start`.
macro_rules! c_struct {
    ($($(#[$meta:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? })*) => { $(
        $(#[$meta])*
        #[repr(C)]
        pub(crate) struct $name {
            pub(crate) struct_size: usize,
            pub(crate) extension_start: *mut $crate::sys::PJRT_Extension_Base,
            $(pub(crate) $field: $type,)*
        }

        // SAFETY: `#[repr(C)]`, starts with `struct_size: usize`, and the fields are integers,
        // `bool`s, raw pointers, optional functions and structs of those.
        unsafe impl $crate::sys::CStruct for $name {
            const STRUCT_SIZE: usize = {
                let ends = [
                    2 * size_of::<usize>(),
                    $(std::mem::offset_of!($name, $field) + size_of::<$type>(),)*
                ];
                // Fields are laid out in order, so the last one ends last.
                ends[ends.len() - 1]
            };
        }
    )* };
}
pub(crate) use c_struct;

/// Declares opaque C types.
macro_rules! opaque {
    ($($name:ident)*) => { $(
        #[repr(C)]
        pub(crate) struct $name {
            opaque: [u8; 0],
            // Not `Send`, `Sync` or `Unpin`, because it is unknown how C uses the object.
            marker: std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,
        }
    )* };
}
pub(crate) use opaque;

opaque! {
    PJRT_Error PJRT_Event PJRT_Client PJRT_Device PJRT_DeviceDescription PJRT_Memory PJRT_Executable
    PJRT_LoadedExecutable PJRT_SerializedExecutable PJRT_Buffer PJRT_ExecuteContext
}

/// A link of the chain of optional tables behind [`PJRT_Api`].
#[repr(C)]
pub(crate) struct PJRT_Extension_Base {
    pub(crate) struct_size: usize,
    pub(crate) kind: i32,
    pub(crate) next: *mut PJRT_Extension_Base,
}

/// `PJRT_Error_Code`, `PJRT_Buffer_Type` and the other enums of the header.
pub(crate) type c_enum = i32;

/// `PJRT_Extension_Type_FFI`.
pub(crate) const PJRT_EXTENSION_TYPE_FFI: c_enum = 5;

/// `PJRT_NamedValue_Type`.
pub(crate) mod named_value {
    use super::c_enum;

    pub(crate) const STRING: c_enum = 0;
    pub(crate) const INT64: c_enum = 1;
    pub(crate) const INT64_LIST: c_enum = 2;
    pub(crate) const FLOAT: c_enum = 3;
    pub(crate) const BOOL: c_enum = 4;
}

/// `PJRT_HostBufferSemantics`.
pub(crate) mod host_buffer_semantics {
    use super::c_enum;

    pub(crate) const IMMUTABLE_ONLY_DURING_CALL: c_enum = 0;
    pub(crate) const IMMUTABLE_ZERO_COPY: c_enum = 2;
}

/// `PJRT_Buffer_MemoryLayout_Type_Tiled`.
pub(crate) const MEMORY_LAYOUT_TILED: c_enum = 0;

/// The payload of a [`PJRT_NamedValue`]; `kind` selects the field.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union PJRT_NamedValue_Payload {
    pub(crate) string: *const u8,
    pub(crate) int64: i64,
    pub(crate) int64_list: *const i64,
    pub(crate) float: f32,
    pub(crate) bool: bool,
}
