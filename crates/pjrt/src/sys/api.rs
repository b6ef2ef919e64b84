//! The function table, `PJRT_Api`, with every slot of version 0.81 in the order of the header.

use super::*;

c_struct! {
    /// The version a plugin was compiled with.
    PJRT_Api_Version { major_version: i32, minor_version: i32 }
}

c_struct! { PJRT_Api {
    pjrt_api_version: PJRT_Api_Version,
    PJRT_Error_Destroy: Option<unsafe extern "C" fn(args: *mut PJRT_Error_Destroy_Args)>,
    PJRT_Error_Message: Option<unsafe extern "C" fn(args: *mut PJRT_Error_Message_Args)>,
    PJRT_Error_GetCode: Slot<PJRT_Error_GetCode_Args>,
    PJRT_Plugin_Initialize: Slot<PJRT_Plugin_Initialize_Args>,
    PJRT_Plugin_Attributes: Slot<PJRT_Plugin_Attributes_Args>,
    PJRT_Event_Destroy: Slot<PJRT_Event_Destroy_Args>,
    PJRT_Event_IsReady: Slot<PJRT_Event_IsReady_Args>,
    PJRT_Event_Error: Unused,
    PJRT_Event_Await: Slot<PJRT_Event_Await_Args>,
    PJRT_Event_OnReady: Slot<PJRT_Event_OnReady_Args>,
    PJRT_Client_Create: Slot<PJRT_Client_Create_Args>,
    PJRT_Client_Destroy: Slot<PJRT_Client_Destroy_Args>,
    PJRT_Client_PlatformName: Slot<PJRT_Client_PlatformName_Args>,
    PJRT_Client_ProcessIndex: Unused,
    PJRT_Client_PlatformVersion: Slot<PJRT_Client_PlatformVersion_Args>,
    PJRT_Client_Devices: Unused,
    PJRT_Client_AddressableDevices: Slot<PJRT_Client_AddressableDevices_Args>,
    PJRT_Client_LookupDevice: Unused,
    PJRT_Client_LookupAddressableDevice: Unused,
    PJRT_Client_AddressableMemories: Unused,
    PJRT_Client_Compile: Slot<PJRT_Client_Compile_Args>,
    PJRT_Client_DefaultDeviceAssignment: Unused,
    PJRT_Client_BufferFromHostBuffer: Slot<PJRT_Client_BufferFromHostBuffer_Args>,
    PJRT_DeviceDescription_Id: Slot<PJRT_DeviceDescription_Id_Args>,
    PJRT_DeviceDescription_ProcessIndex: Unused,
    PJRT_DeviceDescription_Attributes: Unused,
    PJRT_DeviceDescription_Kind: Slot<PJRT_DeviceDescription_Kind_Args>,
    PJRT_DeviceDescription_DebugString: Slot<PJRT_DeviceDescription_DebugString_Args>,
    PJRT_DeviceDescription_ToString: Unused,
    PJRT_Device_GetDescription: Slot<PJRT_Device_GetDescription_Args>,
    PJRT_Device_IsAddressable: Unused,
    PJRT_Device_LocalHardwareId: Slot<PJRT_Device_LocalHardwareId_Args>,
    PJRT_Device_AddressableMemories: Unused,
    PJRT_Device_DefaultMemory: Unused,
    PJRT_Device_MemoryStats: Slot<PJRT_Device_MemoryStats_Args>,
    PJRT_Memory_Id: Unused,
    PJRT_Memory_Kind: Unused,
    PJRT_Memory_DebugString: Unused,
    PJRT_Memory_ToString: Unused,
    PJRT_Memory_AddressableByDevices: Unused,
    PJRT_Executable_Destroy: Slot<PJRT_Executable_Destroy_Args>,
    PJRT_Executable_Name: Slot<PJRT_Executable_Name_Args>,
    PJRT_Executable_NumReplicas: Unused,
    PJRT_Executable_NumPartitions: Unused,
    PJRT_Executable_NumOutputs: Slot<PJRT_Executable_NumOutputs_Args>,
    PJRT_Executable_SizeOfGeneratedCodeInBytes: Unused,
    PJRT_Executable_GetCostAnalysis: Slot<PJRT_Executable_GetCostAnalysis_Args>,
    PJRT_Executable_OutputMemoryKinds: Unused,
    PJRT_Executable_OptimizedProgram: Unused,
    PJRT_Executable_Serialize: Slot<PJRT_Executable_Serialize_Args>,
    PJRT_LoadedExecutable_Destroy: Slot<PJRT_LoadedExecutable_Destroy_Args>,
    PJRT_LoadedExecutable_GetExecutable: Slot<PJRT_LoadedExecutable_GetExecutable_Args>,
    PJRT_LoadedExecutable_AddressableDevices: Slot<PJRT_LoadedExecutable_AddressableDevices_Args>,
    PJRT_LoadedExecutable_Delete: Unused,
    PJRT_LoadedExecutable_IsDeleted: Unused,
    PJRT_LoadedExecutable_Execute: Slot<PJRT_LoadedExecutable_Execute_Args>,
    PJRT_Executable_DeserializeAndLoad: Slot<PJRT_Executable_DeserializeAndLoad_Args>,
    PJRT_LoadedExecutable_Fingerprint: Unused,
    PJRT_Buffer_Destroy: Slot<PJRT_Buffer_Destroy_Args>,
    PJRT_Buffer_ElementType: Unused,
    PJRT_Buffer_Dimensions: Unused,
    PJRT_Buffer_UnpaddedDimensions: Unused,
    PJRT_Buffer_DynamicDimensionIndices: Unused,
    PJRT_Buffer_GetMemoryLayout: Unused,
    PJRT_Buffer_OnDeviceSizeInBytes: Unused,
    PJRT_Buffer_Device: Unused,
    PJRT_Buffer_Memory: Unused,
    PJRT_Buffer_Delete: Slot<PJRT_Buffer_Delete_Args>,
    PJRT_Buffer_IsDeleted: Slot<PJRT_Buffer_IsDeleted_Args>,
    PJRT_Buffer_CopyToDevice: Slot<PJRT_Buffer_CopyToDevice_Args>,
    PJRT_Buffer_ToHostBuffer: Slot<PJRT_Buffer_ToHostBuffer_Args>,
    PJRT_Buffer_IsOnCpu: Unused,
    PJRT_Buffer_ReadyEvent: Slot<PJRT_Buffer_ReadyEvent_Args>,
    PJRT_Buffer_UnsafePointer: Unused,
    PJRT_Buffer_IncreaseExternalReferenceCount: Slot<PJRT_Buffer_IncreaseExternalReferenceCount_Args>,
    PJRT_Buffer_DecreaseExternalReferenceCount: Slot<PJRT_Buffer_DecreaseExternalReferenceCount_Args>,
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer: Slot<PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args>,
    PJRT_CopyToDeviceStream_Destroy: Unused,
    PJRT_CopyToDeviceStream_AddChunk: Unused,
    PJRT_CopyToDeviceStream_TotalBytes: Unused,
    PJRT_CopyToDeviceStream_GranuleSize: Unused,
    PJRT_CopyToDeviceStream_CurrentBytes: Unused,
    PJRT_TopologyDescription_Create: Unused,
    PJRT_TopologyDescription_Destroy: Unused,
    PJRT_TopologyDescription_PlatformName: Unused,
    PJRT_TopologyDescription_PlatformVersion: Unused,
    PJRT_TopologyDescription_GetDeviceDescriptions: Unused,
    PJRT_TopologyDescription_Serialize: Unused,
    PJRT_TopologyDescription_Attributes: Unused,
    PJRT_Compile: Unused,
    PJRT_Executable_OutputElementTypes: Slot<PJRT_Executable_OutputElementTypes_Args>,
    PJRT_Executable_OutputDimensions: Slot<PJRT_Executable_OutputDimensions_Args>,
    PJRT_Buffer_CopyToMemory: Unused,
    PJRT_Client_CreateViewOfDeviceBuffer: Slot<PJRT_Client_CreateViewOfDeviceBuffer_Args>,
    PJRT_Executable_Fingerprint: Unused,
    PJRT_Client_TopologyDescription: Unused,
    PJRT_Executable_GetCompiledMemoryStats: Slot<PJRT_Executable_GetCompiledMemoryStats_Args>,
    PJRT_Memory_Kind_Id: Unused,
    PJRT_ExecuteContext_Create: Slot<PJRT_ExecuteContext_Create_Args>,
    PJRT_ExecuteContext_Destroy: Slot<PJRT_ExecuteContext_Destroy_Args>,
    PJRT_Buffer_CopyRawToHost: Slot<PJRT_Buffer_CopyRawToHost_Args>,
    PJRT_AsyncHostToDeviceTransferManager_Destroy: Unused,
    PJRT_AsyncHostToDeviceTransferManager_TransferData: Unused,
    PJRT_Client_CreateBuffersForAsyncHostToDevice: Unused,
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer: Unused,
    PJRT_AsyncHostToDeviceTransferManager_Device: Unused,
    PJRT_AsyncHostToDeviceTransferManager_BufferCount: Unused,
    PJRT_AsyncHostToDeviceTransferManager_BufferSize: Unused,
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError: Unused,
    PJRT_AsyncHostToDeviceTransferManager_AddMetadata: Unused,
    PJRT_Client_DmaMap: Unused,
    PJRT_Client_DmaUnmap: Unused,
    PJRT_Client_CreateUninitializedBuffer: Slot<PJRT_Client_CreateUninitializedBuffer_Args>,
    PJRT_Client_UpdateGlobalProcessInfo: Unused,
    PJRT_TopologyDescription_Deserialize: Unused,
    PJRT_Client_CreateAliasBuffer: Unused,
    PJRT_Client_FulfillAliasBuffer: Unused,
    PJRT_LoadedExecutable_GetDeviceAssignment: Unused,
} }

impl PJRT_Api {
    /// Copies a plugin's table: the slots it has, and empty ones where its table is shorter.
    ///
    /// # Safety
    /// `table` points to a function table of a plugin whose `struct_size` is right.
    pub(crate) unsafe fn copy_from(table: *const PJRT_Api) -> PJRT_Api {
        let mut copy = PJRT_Api::new();
        // SAFETY: the caller guarantees that at least `struct_size` bytes can be read. At most the
        // size of the destination is copied, and source and destination do not overlap.
        unsafe {
            let available = (&raw const (*table).struct_size).read();
            let len = available.min(size_of::<PJRT_Api>());
            let to = (&raw mut copy).cast::<u8>();
            std::ptr::copy_nonoverlapping(table.cast::<u8>(), to, len);
        }
        copy
    }
}
