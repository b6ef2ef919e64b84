//! Declarations for host functions: the FFI extension of PJRT and the call frame of XLA FFI.
//!
//! The first part follows `pjrt_c_api_ffi_extension.h`, the second `xla/ffi/api/c_api.h`. XLA FFI
//! has its own extension chain and version struct with the layout of PJRT, so both use the same
//! declarations.
//!
//! Plugins of different ages disagree about `PJRT_FFI_Register_Handler_Args`: without
//! `extension_start` up to at least API 0.106, with it later. Both layouts are declared. Which one
//! a plugin has can be found out safely, because it compares `struct_size` before it reads on.

use std::ffi::c_void;

use super::*;

/// The FFI table of a plugin, a link of the extension chain.
#[repr(C)]
pub(crate) struct PJRT_FFI_Extension {
    pub(crate) base: PJRT_Extension_Base,
    pub(crate) type_register: Slot<PJRT_FFI_Type_Register_Args>,
    pub(crate) user_data_add: Slot<PJRT_FFI_UserData_Add_Args>,
    /// Takes one of the two layouts below.
    pub(crate) register_handler: Option<unsafe extern "C" fn(args: *mut c_void) -> *mut PJRT_Error>,
}

/// The older layout, the only struct of the API without `extension_start`.
#[repr(C)]
pub(crate) struct PJRT_FFI_Register_Handler_Args_Short {
    pub(crate) struct_size: usize,
    pub(crate) target_name: *const u8,
    pub(crate) target_name_size: usize,
    pub(crate) handler: Option<XLA_FFI_Handler>,
    pub(crate) platform_name: *const u8,
    pub(crate) platform_name_size: usize,
    pub(crate) traits: c_enum,
}

// SAFETY: `#[repr(C)]`, starts with `struct_size: usize`, and the fields are integers, raw
// pointers and an optional function.
unsafe impl CStruct for PJRT_FFI_Register_Handler_Args_Short {
    const STRUCT_SIZE: usize = std::mem::offset_of!(Self, traits) + size_of::<c_enum>();
}

c_struct! {
    PJRT_FFI_Register_Handler_Args_Long {
        target_name: *const u8,
        target_name_size: usize,
        handler: Option<XLA_FFI_Handler>,
        platform_name: *const u8,
        platform_name_size: usize,
        traits: c_enum,
    }
    // Older plugins do not know the last field, and do not read it.
    PJRT_FFI_Type_Register_Args {
        type_name: *const u8,
        type_name_size: usize,
        type_id: i64,
        type_info: *mut PJRT_FFI_Type_Info,
    }
    // The header nests the fields from `type_id` on in a separate struct, with the same layout.
    // Newer plugins have no `deleter`; it stays null, and the data belongs to the caller.
    PJRT_FFI_UserData_Add_Args {
        context: *mut PJRT_ExecuteContext,
        type_id: i64,
        data: *mut c_void,
        deleter: Option<unsafe extern "C" fn(data: *mut c_void)>,
    }
}

/// The functions with which XLA manages values of a registered type; all are null for plain
/// pointers.
#[repr(C)]
pub(crate) struct PJRT_FFI_Type_Info {
    pub(crate) deleter: Option<unsafe extern "C" fn(object: *mut c_void)>,
    pub(crate) serialize: Option<unsafe extern "C" fn()>,
    pub(crate) deserialize: Option<unsafe extern "C" fn()>,
}

opaque! { XLA_FFI_Error XLA_FFI_ExecutionContext }

/// The type of a host function as XLA calls it.
pub(crate) type XLA_FFI_Handler =
    unsafe extern "C" fn(call_frame: *mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error;

/// `XLA_FFI_Extension_Metadata`: the frame is a query for the handler's version instead of a call.
pub(crate) const XLA_FFI_EXTENSION_METADATA: c_enum = 1;

/// `XLA_FFI_ExecutionStage_EXECUTE`.
pub(crate) const XLA_FFI_STAGE_EXECUTE: c_enum = 3;

/// `XLA_FFI_ArgType_BUFFER` and `XLA_FFI_RetType_BUFFER`.
pub(crate) const XLA_FFI_BUFFER: c_enum = 1;

/// `XLA_FFI_Error_Code_UNKNOWN`.
pub(crate) const XLA_FFI_ERROR_UNKNOWN: c_enum = 2;

/// `XLA_FFI_Error_Code_INTERNAL`.
pub(crate) const XLA_FFI_ERROR_INTERNAL: c_enum = 13;

/// `XLA_FFI_AttrType`.
pub(crate) mod xla_ffi_attr {
    use super::c_enum;

    pub(crate) const SCALAR: c_enum = 3;
    pub(crate) const STRING: c_enum = 4;
}

/// The beginning of XLA's own function table, up to the last used function.
#[repr(C)]
pub(crate) struct XLA_FFI_Api {
    pub(crate) struct_size: usize,
    pub(crate) extension_start: *mut PJRT_Extension_Base,
    pub(crate) api_version: PJRT_Api_Version,
    pub(crate) internal_api: Unused,
    pub(crate) XLA_FFI_Error_Create:
        Option<unsafe extern "C" fn(args: *mut XLA_FFI_Error_Create_Args) -> *mut XLA_FFI_Error>,
    pub(crate) XLA_FFI_Error_GetMessage: Unused,
    pub(crate) XLA_FFI_Error_Destroy:
        Option<unsafe extern "C" fn(args: *mut XLA_FFI_Error_Destroy_Args)>,
    pub(crate) XLA_FFI_Handler_Register: Unused,
    pub(crate) XLA_FFI_Stream_Get:
        Option<unsafe extern "C" fn(args: *mut XLA_FFI_Stream_Get_Args) -> *mut XLA_FFI_Error>,
    pub(crate) XLA_FFI_Type_Register: Unused,
    pub(crate) XLA_FFI_ExecutionContext_Get: Option<
        unsafe extern "C" fn(args: *mut XLA_FFI_ExecutionContext_Get_Args) -> *mut XLA_FFI_Error,
    >,
    pub(crate) XLA_FFI_State_Set: Unused,
    pub(crate) XLA_FFI_State_Get: Unused,
    pub(crate) XLA_FFI_DeviceMemory_Allocate: Option<
        unsafe extern "C" fn(args: *mut XLA_FFI_DeviceMemory_Allocate_Args) -> *mut XLA_FFI_Error,
    >,
    pub(crate) XLA_FFI_DeviceMemory_Free: Option<
        unsafe extern "C" fn(args: *mut XLA_FFI_DeviceMemory_Free_Args) -> *mut XLA_FFI_Error,
    >,
}

c_struct! {
    XLA_FFI_Error_Create_Args { message: *const std::ffi::c_char, errc: c_enum }
    XLA_FFI_Error_Destroy_Args { error: *mut XLA_FFI_Error }
    XLA_FFI_Stream_Get_Args { ctx: *mut XLA_FFI_ExecutionContext, stream: *mut c_void }
    XLA_FFI_DeviceMemory_Allocate_Args {
        ctx: *mut XLA_FFI_ExecutionContext,
        size: usize,
        alignment: usize,
        data: *mut c_void,
    }
    XLA_FFI_DeviceMemory_Free_Args {
        ctx: *mut XLA_FFI_ExecutionContext,
        size: usize,
        data: *mut c_void,
    }
    XLA_FFI_ExecutionContext_Get_Args {
        ctx: *mut XLA_FFI_ExecutionContext,
        type_id: *mut i64,
        data: *mut c_void,
    }
    XLA_FFI_Buffer { dtype: c_enum, data: *mut u8, rank: i64, dims: *const i64 }
    // Arguments and results have the same layout.
    XLA_FFI_Values { size: i64, types: *const c_enum, values: *const *const c_void }
    XLA_FFI_Attrs {
        size: i64,
        types: *const c_enum,
        names: *const *const XLA_FFI_ByteSpan,
        attrs: *const *const c_void,
    }
    XLA_FFI_CallFrame {
        api: *const XLA_FFI_Api,
        ctx: *mut XLA_FFI_ExecutionContext,
        stage: c_enum,
        args: XLA_FFI_Values,
        rets: XLA_FFI_Values,
        attrs: XLA_FFI_Attrs,
    }
}

/// A string that is not terminated; also the payload of a string attribute.
#[repr(C)]
pub(crate) struct XLA_FFI_ByteSpan {
    pub(crate) ptr: *const u8,
    pub(crate) len: usize,
}

/// The payload of a scalar attribute.
#[repr(C)]
pub(crate) struct XLA_FFI_Scalar {
    pub(crate) dtype: c_enum,
    pub(crate) value: *const c_void,
}

/// The beginning of the struct that a metadata query fills.
#[repr(C)]
pub(crate) struct XLA_FFI_Metadata {
    pub(crate) struct_size: usize,
    pub(crate) api_version: PJRT_Api_Version,
    pub(crate) traits: u32,
}

/// The link of the frame's extension chain that marks a metadata query.
#[repr(C)]
pub(crate) struct XLA_FFI_Metadata_Extension {
    pub(crate) base: PJRT_Extension_Base,
    pub(crate) metadata: *mut XLA_FFI_Metadata,
}
