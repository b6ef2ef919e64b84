//! Argument structs of the functions that are called, grouped by object as in the header.
//!
//! A field that the header marks `// out` is written by the plugin; all others are inputs.

use std::ffi::c_void;

use super::*;

/// Declares argument structs and ties each to its function.
macro_rules! args {
    ($($function:ident: $name:ident { $($field:ident: $type:ty),* $(,)? })*) => { $(
        c_struct! { $name { $($field: $type),* } }

        impl Args for $name {
            const FUNCTION: &'static str = stringify!($function);

            fn slot(api: &PJRT_Api) -> Slot<Self> {
                api.$function
            }
        }
    )* };
}

// Errors. The functions that destroy an error or read its message return nothing, so these structs
// do not implement `Args`.
c_struct! {
    PJRT_Error_Destroy_Args { error: *mut PJRT_Error }
    PJRT_Error_Message_Args {
        error: *const PJRT_Error,
        message: *const u8,
        message_size: usize,
    }
}

args! {
    PJRT_Error_GetCode: PJRT_Error_GetCode_Args { error: *const PJRT_Error, code: c_enum }
}

// Named values and plugins.
c_struct! {
    PJRT_NamedValue {
        name: *const u8,
        name_size: usize,
        kind: c_enum,
        value: PJRT_NamedValue_Payload,
        value_size: usize,
    }
}

args! {
    PJRT_Plugin_Initialize: PJRT_Plugin_Initialize_Args {}
    PJRT_Plugin_Attributes: PJRT_Plugin_Attributes_Args {
        attributes: *const PJRT_NamedValue,
        num_attributes: usize,
    }
}

// Events.
/// Takes ownership of `error`.
pub(crate) type PJRT_Event_OnReadyCallback =
    unsafe extern "C" fn(error: *mut PJRT_Error, user_arg: *mut c_void);

args! {
    PJRT_Event_Destroy: PJRT_Event_Destroy_Args { event: *mut PJRT_Event }
    PJRT_Event_IsReady: PJRT_Event_IsReady_Args { event: *mut PJRT_Event, is_ready: bool }
    PJRT_Event_Await: PJRT_Event_Await_Args { event: *mut PJRT_Event }
    PJRT_Event_OnReady: PJRT_Event_OnReady_Args {
        event: *mut PJRT_Event,
        callback: Option<PJRT_Event_OnReadyCallback>,
        user_arg: *mut c_void,
    }
}

/// Called when the plugin no longer needs the memory of a view.
pub(crate) type PJRT_Client_OnDeleteCallback =
    unsafe extern "C" fn(device_buffer_ptr: *mut c_void, user_arg: *mut c_void);

// Clients and devices. The key-value callbacks serve clusters of processes and stay null.
args! {
    PJRT_Client_Create: PJRT_Client_Create_Args {
        create_options: *const PJRT_NamedValue,
        num_options: usize,
        kv_get_callback: *const c_void,
        kv_get_user_arg: *mut c_void,
        kv_put_callback: *const c_void,
        kv_put_user_arg: *mut c_void,
        client: *mut PJRT_Client,
        kv_try_get_callback: *const c_void,
        kv_try_get_user_arg: *mut c_void,
    }
    PJRT_Client_Destroy: PJRT_Client_Destroy_Args { client: *mut PJRT_Client }
    PJRT_Client_PlatformName: PJRT_Client_PlatformName_Args {
        client: *mut PJRT_Client,
        platform_name: *const u8,
        platform_name_size: usize,
    }
    PJRT_Client_PlatformVersion: PJRT_Client_PlatformVersion_Args {
        client: *mut PJRT_Client,
        platform_version: *const u8,
        platform_version_size: usize,
    }
    PJRT_Client_AddressableDevices: PJRT_Client_AddressableDevices_Args {
        client: *mut PJRT_Client,
        addressable_devices: *const *mut PJRT_Device,
        num_addressable_devices: usize,
    }
    PJRT_Client_Compile: PJRT_Client_Compile_Args {
        client: *mut PJRT_Client,
        program: *const PJRT_Program,
        compile_options: *const u8,
        compile_options_size: usize,
        executable: *mut PJRT_LoadedExecutable,
    }
    PJRT_Client_BufferFromHostBuffer: PJRT_Client_BufferFromHostBuffer_Args {
        client: *mut PJRT_Client,
        data: *const c_void,
        element_type: c_enum,
        dims: *const i64,
        num_dims: usize,
        byte_strides: *const i64,
        num_byte_strides: usize,
        host_buffer_semantics: c_enum,
        device: *mut PJRT_Device,
        memory: *mut PJRT_Memory,
        device_layout: *mut PJRT_Buffer_MemoryLayout,
        done_with_host_buffer: *mut PJRT_Event,
        buffer: *mut PJRT_Buffer,
    }
    PJRT_Client_CreateViewOfDeviceBuffer: PJRT_Client_CreateViewOfDeviceBuffer_Args {
        client: *mut PJRT_Client,
        device_buffer_ptr: *mut c_void,
        dims: *const i64,
        num_dims: usize,
        element_type: c_enum,
        layout: *mut PJRT_Buffer_MemoryLayout,
        device: *mut PJRT_Device,
        on_delete_callback: Option<PJRT_Client_OnDeleteCallback>,
        on_delete_callback_arg: *mut c_void,
        stream: isize,
        buffer: *mut PJRT_Buffer,
        memory: *mut PJRT_Memory,
    }
    PJRT_Client_CreateUninitializedBuffer: PJRT_Client_CreateUninitializedBuffer_Args {
        client: *mut PJRT_Client,
        shape_dims: *const i64,
        shape_num_dims: usize,
        shape_element_type: c_enum,
        shape_layout: *mut PJRT_Buffer_MemoryLayout,
        device: *mut PJRT_Device,
        memory: *mut PJRT_Memory,
        buffer: *mut PJRT_Buffer,
    }
    PJRT_Device_GetDescription: PJRT_Device_GetDescription_Args {
        device: *mut PJRT_Device,
        device_description: *mut PJRT_DeviceDescription,
    }
    PJRT_Device_LocalHardwareId: PJRT_Device_LocalHardwareId_Args {
        device: *mut PJRT_Device,
        local_hardware_id: i32,
    }
    PJRT_Device_MemoryStats: PJRT_Device_MemoryStats_Args {
        device: *mut PJRT_Device,
        bytes_in_use: i64,
        peak_bytes_in_use: i64,
        peak_bytes_in_use_is_set: bool,
        num_allocs: i64,
        num_allocs_is_set: bool,
        largest_alloc_size: i64,
        largest_alloc_size_is_set: bool,
        bytes_limit: i64,
        bytes_limit_is_set: bool,
        bytes_reserved: i64,
        bytes_reserved_is_set: bool,
        peak_bytes_reserved: i64,
        peak_bytes_reserved_is_set: bool,
        bytes_reservable_limit: i64,
        bytes_reservable_limit_is_set: bool,
        largest_free_block_bytes: i64,
        largest_free_block_bytes_is_set: bool,
        pool_bytes: i64,
        pool_bytes_is_set: bool,
        peak_pool_bytes: i64,
        peak_pool_bytes_is_set: bool,
    }
    PJRT_DeviceDescription_Id: PJRT_DeviceDescription_Id_Args {
        device_description: *mut PJRT_DeviceDescription,
        id: i32,
    }
    PJRT_DeviceDescription_Kind: PJRT_DeviceDescription_Kind_Args {
        device_description: *mut PJRT_DeviceDescription,
        device_kind: *const u8,
        device_kind_size: usize,
    }
    PJRT_DeviceDescription_DebugString: PJRT_DeviceDescription_DebugString_Args {
        device_description: *mut PJRT_DeviceDescription,
        debug_string: *const u8,
        debug_string_size: usize,
    }
}

c_struct! {
    PJRT_Program {
        code: *mut u8,
        code_size: usize,
        format: *const u8,
        format_size: usize,
    }
    PJRT_Buffer_MemoryLayout_Tiled {
        minor_to_major: *const i64,
        minor_to_major_size: usize,
        tile_dims: *const i64,
        tile_dim_sizes: *const usize,
        num_tiles: usize,
    }
    // In C the second field is a union with a strided layout, which is smaller and not used here.
    PJRT_Buffer_MemoryLayout { tiled: PJRT_Buffer_MemoryLayout_Tiled, kind: c_enum }
}

// Executables.
args! {
    PJRT_Executable_Destroy: PJRT_Executable_Destroy_Args { executable: *mut PJRT_Executable }
    PJRT_Executable_Name: PJRT_Executable_Name_Args {
        executable: *mut PJRT_Executable,
        executable_name: *const u8,
        executable_name_size: usize,
    }
    PJRT_Executable_NumOutputs: PJRT_Executable_NumOutputs_Args {
        executable: *mut PJRT_Executable,
        num_outputs: usize,
    }
    PJRT_Executable_GetCostAnalysis: PJRT_Executable_GetCostAnalysis_Args {
        executable: *mut PJRT_Executable,
        num_properties: usize,
        properties: *const PJRT_NamedValue,
    }
    PJRT_Executable_GetCompiledMemoryStats: PJRT_Executable_GetCompiledMemoryStats_Args {
        executable: *mut PJRT_Executable,
        generated_code_size_in_bytes: i64,
        argument_size_in_bytes: i64,
        output_size_in_bytes: i64,
        alias_size_in_bytes: i64,
        temp_size_in_bytes: i64,
        host_generated_code_size_in_bytes: i64,
        host_argument_size_in_bytes: i64,
        host_output_size_in_bytes: i64,
        host_alias_size_in_bytes: i64,
        host_temp_size_in_bytes: i64,
        peak_memory_in_bytes: i64,
    }
    PJRT_Executable_OutputElementTypes: PJRT_Executable_OutputElementTypes_Args {
        executable: *mut PJRT_Executable,
        output_types: *mut c_enum,
        num_output_types: usize,
    }
    PJRT_Executable_OutputDimensions: PJRT_Executable_OutputDimensions_Args {
        executable: *mut PJRT_Executable,
        num_outputs: usize,
        dims: *const i64,
        dim_sizes: *const usize,
    }
    PJRT_Executable_Serialize: PJRT_Executable_Serialize_Args {
        executable: *const PJRT_Executable,
        serialized_bytes: *const u8,
        serialized_bytes_size: usize,
        serialized_executable: *mut PJRT_SerializedExecutable,
        serialized_executable_deleter:
            Option<unsafe extern "C" fn(executable: *mut PJRT_SerializedExecutable)>,
    }
    PJRT_Executable_DeserializeAndLoad: PJRT_Executable_DeserializeAndLoad_Args {
        client: *mut PJRT_Client,
        serialized_executable: *const u8,
        serialized_executable_size: usize,
        loaded_executable: *mut PJRT_LoadedExecutable,
        overridden_serialized_compile_options: *const u8,
        overridden_serialized_compile_options_size: usize,
    }
    PJRT_LoadedExecutable_Destroy: PJRT_LoadedExecutable_Destroy_Args {
        executable: *mut PJRT_LoadedExecutable,
    }
    PJRT_LoadedExecutable_GetExecutable: PJRT_LoadedExecutable_GetExecutable_Args {
        loaded_executable: *mut PJRT_LoadedExecutable,
        executable: *mut PJRT_Executable,
    }
    PJRT_LoadedExecutable_AddressableDevices: PJRT_LoadedExecutable_AddressableDevices_Args {
        executable: *mut PJRT_LoadedExecutable,
        addressable_devices: *const *mut PJRT_Device,
        num_addressable_devices: usize,
    }
    PJRT_LoadedExecutable_Execute: PJRT_LoadedExecutable_Execute_Args {
        executable: *mut PJRT_LoadedExecutable,
        options: *mut PJRT_ExecuteOptions,
        argument_lists: *const *const *mut PJRT_Buffer,
        num_devices: usize,
        num_args: usize,
        output_lists: *const *mut *mut PJRT_Buffer,
        device_complete_events: *mut *mut PJRT_Event,
        execute_device: *mut PJRT_Device,
    }
    PJRT_ExecuteContext_Create: PJRT_ExecuteContext_Create_Args {
        context: *mut PJRT_ExecuteContext,
    }
    PJRT_ExecuteContext_Destroy: PJRT_ExecuteContext_Destroy_Args {
        context: *mut PJRT_ExecuteContext,
    }
}

c_struct! {
    PJRT_ExecuteOptions {
        send_callbacks: *mut *mut c_void,
        recv_callbacks: *mut *mut c_void,
        num_send_ops: usize,
        num_recv_ops: usize,
        launch_id: i32,
        non_donatable_input_indices: *const i64,
        num_non_donatable_input_indices: usize,
        context: *mut PJRT_ExecuteContext,
        call_location: *const u8,
        num_tasks: usize,
        task_ids: *mut i32,
        incarnation_ids: *mut i64,
    }
}

// Buffers.
args! {
    PJRT_Buffer_Destroy: PJRT_Buffer_Destroy_Args { buffer: *mut PJRT_Buffer }
    PJRT_Buffer_Delete: PJRT_Buffer_Delete_Args { buffer: *mut PJRT_Buffer }
    PJRT_Buffer_IsDeleted: PJRT_Buffer_IsDeleted_Args { buffer: *mut PJRT_Buffer, is_deleted: bool }
    PJRT_Buffer_CopyToDevice: PJRT_Buffer_CopyToDevice_Args {
        buffer: *mut PJRT_Buffer,
        dst_device: *mut PJRT_Device,
        dst_buffer: *mut PJRT_Buffer,
    }
    PJRT_Buffer_ToHostBuffer: PJRT_Buffer_ToHostBuffer_Args {
        src: *mut PJRT_Buffer,
        host_layout: *mut PJRT_Buffer_MemoryLayout,
        dst: *mut c_void,
        dst_size: usize,
        event: *mut PJRT_Event,
    }
    PJRT_Buffer_CopyRawToHost: PJRT_Buffer_CopyRawToHost_Args {
        buffer: *mut PJRT_Buffer,
        dst: *mut c_void,
        offset: i64,
        transfer_size: i64,
        event: *mut PJRT_Event,
    }
    PJRT_Buffer_ReadyEvent: PJRT_Buffer_ReadyEvent_Args {
        buffer: *mut PJRT_Buffer,
        event: *mut PJRT_Event,
    }
    PJRT_Buffer_IncreaseExternalReferenceCount: PJRT_Buffer_IncreaseExternalReferenceCount_Args {
        buffer: *mut PJRT_Buffer,
    }
    PJRT_Buffer_DecreaseExternalReferenceCount: PJRT_Buffer_DecreaseExternalReferenceCount_Args {
        buffer: *mut PJRT_Buffer,
    }
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer: PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args {
        buffer: *mut PJRT_Buffer,
        device_memory_ptr: *mut c_void,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares `STRUCT_SIZE` with the size that a C compiler printed for the header.
    macro_rules! assert_sizes {
        ($($name:ident = $size:literal,)*) => {
            $(assert_eq!($name::STRUCT_SIZE, $size, stringify!($name));)*
        };
    }

    #[test]
    fn struct_sizes_match_the_c_header() {
        assert_sizes! {
            PJRT_Error_GetCode_Args = 28,
            PJRT_Plugin_Initialize_Args = 16,
            PJRT_Plugin_Attributes_Args = 32,
            PJRT_Event_Destroy_Args = 24,
            PJRT_Event_IsReady_Args = 25,
            PJRT_Event_Await_Args = 24,
            PJRT_Event_OnReady_Args = 40,
            PJRT_Client_Create_Args = 88,
            PJRT_Client_Destroy_Args = 24,
            PJRT_Client_PlatformName_Args = 40,
            PJRT_Client_PlatformVersion_Args = 40,
            PJRT_Client_AddressableDevices_Args = 40,
            PJRT_Client_Compile_Args = 56,
            PJRT_Client_BufferFromHostBuffer_Args = 120,
            PJRT_Client_CreateViewOfDeviceBuffer_Args = 112,
            PJRT_Client_CreateUninitializedBuffer_Args = 80,
            PJRT_Device_GetDescription_Args = 32,
            PJRT_Device_LocalHardwareId_Args = 28,
            PJRT_Device_MemoryStats_Args = 185,
            PJRT_DeviceDescription_Id_Args = 28,
            PJRT_DeviceDescription_Kind_Args = 40,
            PJRT_DeviceDescription_DebugString_Args = 40,
            PJRT_Executable_Destroy_Args = 24,
            PJRT_Executable_Name_Args = 40,
            PJRT_Executable_NumOutputs_Args = 32,
            PJRT_Executable_GetCostAnalysis_Args = 40,
            PJRT_Executable_GetCompiledMemoryStats_Args = 112,
            PJRT_Executable_OutputElementTypes_Args = 40,
            PJRT_Executable_OutputDimensions_Args = 48,
            PJRT_Executable_Serialize_Args = 56,
            PJRT_Executable_DeserializeAndLoad_Args = 64,
            PJRT_LoadedExecutable_Destroy_Args = 24,
            PJRT_LoadedExecutable_GetExecutable_Args = 32,
            PJRT_LoadedExecutable_AddressableDevices_Args = 40,
            PJRT_LoadedExecutable_Execute_Args = 80,
            PJRT_ExecuteContext_Create_Args = 24,
            PJRT_ExecuteContext_Destroy_Args = 24,
            PJRT_Buffer_Destroy_Args = 24,
            PJRT_Buffer_Delete_Args = 24,
            PJRT_Buffer_IsDeleted_Args = 25,
            PJRT_Buffer_CopyToDevice_Args = 40,
            PJRT_Buffer_ToHostBuffer_Args = 56,
            PJRT_Buffer_CopyRawToHost_Args = 56,
            PJRT_Buffer_ReadyEvent_Args = 32,
            PJRT_Buffer_IncreaseExternalReferenceCount_Args = 24,
            PJRT_Buffer_DecreaseExternalReferenceCount_Args = 24,
            PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args = 32,
            PJRT_Error_Destroy_Args = 24,
            PJRT_Error_Message_Args = 40,
            PJRT_NamedValue = 56,
            PJRT_Program = 48,
            PJRT_Buffer_MemoryLayout_Tiled = 56,
            PJRT_Buffer_MemoryLayout = 76,
            PJRT_ExecuteOptions = 112,
            PJRT_Api_Version = 24,
        }
    }

    #[test]
    fn function_table_offsets_match_the_c_header() {
        assert_eq!(PJRT_Api::STRUCT_SIZE, 984);
        assert_eq!(std::mem::offset_of!(PJRT_Api, PJRT_LoadedExecutable_Execute), 480);
    }

    #[test]
    fn shorter_function_tables_leave_later_slots_empty() {
        unsafe extern "C" fn execute(
            _: *mut PJRT_LoadedExecutable_Execute_Args,
        ) -> *mut PJRT_Error {
            std::ptr::null_mut()
        }
        unsafe extern "C" fn create(_: *mut PJRT_ExecuteContext_Create_Args) -> *mut PJRT_Error {
            std::ptr::null_mut()
        }
        let mut table = PJRT_Api::new();
        table.PJRT_LoadedExecutable_Execute = Some(execute);
        table.PJRT_ExecuteContext_Create = Some(create);
        table.struct_size = std::mem::offset_of!(PJRT_Api, PJRT_ExecuteContext_Create);
        // SAFETY: `table` is a complete table; the size that it declares is smaller.
        let copy = unsafe { PJRT_Api::copy_from(&raw const table) };
        assert!(PJRT_LoadedExecutable_Execute_Args::slot(&copy).is_some());
        assert!(PJRT_ExecuteContext_Create_Args::slot(&copy).is_none());
    }
}
