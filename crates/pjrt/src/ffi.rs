//! The foreign side of host functions: registration, call frames, errors.
//!
//! Every plugin contains its own XLA and so its own registries. One handler is registered with
//! each, under [`HOST_CALL_TARGET`], and a type of pointer by which an execution carries its own
//! table of functions. When the handler is called it must know the number that *this* plugin
//! assigned to that type; plugins are distinguished by the address of the function table that XLA
//! passes with every call, which is learnt when the plugin asks the new handler for its version.

use std::any::Any;
use std::cell::Cell;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};
use std::sync::{Arc, PoisonError, RwLock};

use nxla_tensor::{DType, Shape};

use crate::client::{Client, non_null};
use crate::cuda::{self, RawStream, Stream};
use crate::dtype;
use crate::error::Error;
use crate::float_mode::OrdinaryFloats;
use crate::host::{
    HOST_CALL_TARGET, HostAttribute, HostCallFrame, HostCallTable, HostHandler, HostView,
    HostViewMut, PROCESS_WIDE, stored_size,
};
use crate::in_flight::ForeignThread;
use crate::sys::*;
use crate::value::slice;

/// Version of XLA FFI that the handler is written for.
const FFI_VERSION: (i32, i32) = (0, 1);

/// The name that programs call factorizations of matrices on a CUDA device by. The attribute
/// `routine` is `cholesky`, `lu`, `qr`, `eigh` or `svd`; see [`Client::factorizes`].
pub const FACTORIZE_TARGET: &str = "nxla_factorize";

/// The type ids of the tables of executions, one for each copy of XLA: the address of the function
/// table, and the id of the pointer type.
static TABLE_TYPES: RwLock<Vec<(usize, i64)>> = RwLock::new(Vec::new());

thread_local! {
    /// The type number of the plugin that is being registered with on this thread.
    static REGISTERING: Cell<Option<i64>> = const { Cell::new(None) };
}

/// The registration of the handlers with a plugin.
pub(crate) struct HostCalls {
    add_user_data: Slot<PJRT_FFI_UserData_Add_Args>,
    type_id: i64,
    /// True if programs on CUDA devices can call the host too.
    on_cuda: bool,
}

impl HostCalls {
    /// Returns true if programs of a platform can call the host.
    pub(crate) fn reach(&self, platform: &str) -> bool {
        match platform {
            "cpu" | "host" => true,
            "cuda" => self.on_cuda,
            _ => false,
        }
    }

    /// Returns true if the plugin has handlers for CUDA devices.
    pub(crate) fn on_cuda(&self) -> bool {
        self.on_cuda
    }

    /// Registers type and handlers with a plugin, `on_cuda` if it is one for such devices.
    ///
    /// # Safety
    /// `table` is the FFI table of an initialized plugin, and `check` takes ownership of its
    /// errors.
    pub(crate) unsafe fn install(
        table: &PJRT_FFI_Extension,
        on_cuda: bool,
        check: impl Fn(&'static str, *mut PJRT_Error) -> Result<(), Error>,
    ) -> Result<HostCalls, Error> {
        const TYPE_NAME: &str = "nxla_host_call_table";
        let mut info = PJRT_FFI_Type_Info { deleter: None, serialize: None, deserialize: None };
        let mut args = PJRT_FFI_Type_Register_Args::new();
        args.type_name = TYPE_NAME.as_ptr();
        args.type_name_size = TYPE_NAME.len();
        args.type_info = &raw mut info;
        if let Some(register) = table.type_register {
            // SAFETY: name and info outlive the call.
            check("PJRT_FFI_Type_Register", unsafe { register(&mut args) })?;
        }
        REGISTERING.set(Some(args.type_id));
        // SAFETY: the caller guarantees the requirements in `# Safety` above.
        let registered = unsafe {
            let register = |target, platform, handler| {
                register_handler(table, (target, platform), handler, &check)
            };
            register(HOST_CALL_TARGET, "Host", handle).and_then(|()| {
                if on_cuda {
                    register(HOST_CALL_TARGET, "CUDA", handle_on_cuda)
                        .and_then(|()| register(FACTORIZE_TARGET, "CUDA", handle_factorization))
                } else {
                    Ok(())
                }
            })
        };
        REGISTERING.set(None);
        registered?;
        Ok(HostCalls { add_user_data: table.user_data_add, type_id: args.type_id, on_cuda })
    }
}

/// Registers a handler for a name on a platform, in the layout the plugin takes.
///
/// # Safety
/// The requirements of [`HostCalls::install`].
unsafe fn register_handler(
    table: &PJRT_FFI_Extension,
    (target, platform): (&'static str, &'static str),
    handler: XLA_FFI_Handler,
    check: impl Fn(&'static str, *mut PJRT_Error) -> Result<(), Error>,
) -> Result<(), Error> {
    const FUNCTION: &str = "PJRT_FFI_Register_Handler";
    let Some(register) = table.register_handler else {
        return Ok(());
    };
    let mut short = PJRT_FFI_Register_Handler_Args_Short::new();
    short.target_name = target.as_ptr();
    short.target_name_size = target.len();
    short.handler = Some(handler);
    short.platform_name = platform.as_ptr();
    short.platform_name_size = platform.len();
    // SAFETY: the names outlive the call. A plugin that expects the longer layout rejects the size
    // before it reads another field.
    let result = check(FUNCTION, unsafe { register((&raw mut short).cast()) });
    let long_size = PJRT_FFI_Register_Handler_Args_Long::STRUCT_SIZE;
    match result {
        // All other errors are from plugins with the short layout, which would misread the long
        // one.
        Err(Error::Plugin { message, .. })
            if message.contains(&format!("expected {long_size}")) =>
        {
            let mut long = PJRT_FFI_Register_Handler_Args_Long::new();
            long.target_name = short.target_name;
            long.target_name_size = short.target_name_size;
            long.handler = short.handler;
            long.platform_name = short.platform_name;
            long.platform_name_size = short.platform_name_size;
            // SAFETY: the names outlive the call, and the plugin has reported that it expects this
            // layout.
            check(FUNCTION, unsafe { register((&raw mut long).cast()) })
        }
        other => other,
    }
}

/// The host functions of one execution, alive until it is over.
pub(crate) struct ExecutionContext {
    raw: NonNull<PJRT_ExecuteContext>,
    client: Client,
    /// XLA holds a pointer into it.
    _table: Arc<HostCallTable>,
}

// SAFETY: PJRT objects may be used and destroyed on any thread, and the context is not used
// between the start of the execution and its end.
unsafe impl Send for ExecutionContext {}
// SAFETY: see `Send`.
unsafe impl Sync for ExecutionContext {}

impl ExecutionContext {
    /// A context that carries `table`.
    pub(crate) fn new(
        client: &Client,
        table: Arc<HostCallTable>,
    ) -> Result<ExecutionContext, Error> {
        const FUNCTION: &str = "PJRT_FFI_UserData_Add";
        let plugin = client.plugin();
        let host_calls = plugin.host_calls()?;
        let add = host_calls.add_user_data.ok_or_else(|| plugin.unsupported_error(FUNCTION))?;
        let mut create = PJRT_ExecuteContext_Create_Args::new();
        // SAFETY: the struct has only outputs. This function owns the context.
        unsafe { plugin.call(&mut create)? };
        let raw = non_null(&create, create.context, &plugin)?;
        let mut args = PJRT_FFI_UserData_Add_Args::new();
        args.context = raw.as_ptr();
        args.type_id = host_calls.type_id;
        args.data = Arc::as_ptr(&table).cast_mut().cast();
        let context = ExecutionContext { raw, client: client.clone(), _table: table };
        // SAFETY: the context is alive, and the table lives as long as the context.
        unsafe { plugin.check(FUNCTION, add(&mut args))? };
        Ok(context)
    }

    pub(crate) fn as_ptr(&self) -> *mut PJRT_ExecuteContext {
        self.raw.as_ptr()
    }
}

impl Drop for ExecutionContext {
    fn drop(&mut self) {
        let mut args = PJRT_ExecuteContext_Destroy_Args::new();
        args.context = self.raw.as_ptr();
        // SAFETY: the context is alive, and this is its last use: its execution has ended or was
        // never started. An error cannot be reported from here.
        let _ = unsafe { self.client.plugin().call(&mut args) };
    }
}

/// The handler that XLA calls for programs on the host: for its version when it is registered, and
/// for every host call.
///
/// # Safety
/// `frame` is a call frame of XLA FFI.
unsafe extern "C" fn handle(frame: *mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error {
    // SAFETY: the caller guarantees the requirements in `# Safety` above.
    unsafe {
        answer(frame, |frame| {
            let mut call = decode(frame)?;
            find_function(frame, &call)?.call(&mut call)
        })
    }
}

/// The handler for programs on CUDA devices: functions receive copies of arguments, and results are
/// copied back. The thread that launches the program waits meanwhile, and so does its stream.
///
/// # Safety
/// `frame` is a call frame of XLA FFI.
unsafe extern "C" fn handle_on_cuda(frame: *mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error {
    // SAFETY: the stream belongs to the frame and is left before the call returns. A frame has as
    // many buffers as it declares, in the memory of the device of the stream. All other uses of the
    // buffers are ordered before or after this call in the stream.
    unsafe {
        answer(frame, |frame| {
            let stream = Stream::enter(raw_stream(frame)?)?;
            let (args, results) = (buffers(&frame.args)?, buffers(&frame.rets)?);
            let copied = |raw: &RawBuffer| {
                let mut bytes = vec![0; raw.len];
                stream.read(raw.data, &mut bytes).map(|()| bytes)
            };
            let given: Vec<Vec<u8>> = args.iter().map(copied).collect::<Result<_, String>>()?;
            let mut made: Vec<Vec<u8>> = results.iter().map(|raw| vec![0; raw.len]).collect();
            let views = args.into_iter().zip(&given);
            let room = results.iter().zip(&mut made);
            let mut call = HostCallFrame {
                args: views.map(|(raw, bytes)| raw.with_bytes(bytes)).collect(),
                results: room.map(|(raw, bytes)| raw.with_bytes_mut(bytes)).collect(),
                attributes: attributes(&frame.attrs),
            };
            find_function(frame, &call)?.call(&mut call)?;
            let mut pairs = results.iter().zip(&made);
            pairs.try_for_each(|(raw, bytes)| stream.write(bytes, raw.data))
        })
    }
}

/// The handler for factorizations on CUDA devices.
///
/// # Safety
/// `frame` is a call frame of XLA FFI.
unsafe extern "C" fn handle_factorization(frame: *mut XLA_FFI_CallFrame) -> *mut XLA_FFI_Error {
    // SAFETY: the stream belongs to the frame and is left before the call returns. The buffers of
    // the frame are memory of the device of the stream, whose other uses the stream orders.
    unsafe {
        answer(frame, |frame| {
            let stream = Stream::enter(raw_stream(frame)?)?;
            cuda::factorize(frame, &stream)
        })
    }
}

/// Handles a request of XLA to a handler; `run` executes a call.
///
/// # Safety
/// `frame` is a call frame of XLA FFI.
unsafe fn answer(
    frame: *mut XLA_FFI_CallFrame,
    run: impl FnOnce(&XLA_FFI_CallFrame) -> Result<(), String>,
) -> *mut XLA_FFI_Error {
    let _foreign = ForeignThread::enter();
    let _ordinary = OrdinaryFloats::enter();
    // Unwinding into C++ is undefined behavior, so a panic becomes an error. The user's function is
    // responsible for its own state.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller guarantees the requirements in `# Safety` above.
        unsafe {
            let frame = &*frame;
            if answer_metadata(frame) || frame.stage != XLA_FFI_STAGE_EXECUTE {
                return Ok(());
            }
            run(frame)
        }
    }));
    let (code, message) = match outcome {
        Ok(Ok(())) => return null_mut(),
        Ok(Err(message)) => (XLA_FFI_ERROR_UNKNOWN, message),
        Err(panic) => (XLA_FFI_ERROR_INTERNAL, panic_message(panic)),
    };
    // SAFETY: the function table of XLA lives as long as XLA.
    unsafe { create_error((*frame).api, code, message) }
}

/// Answers a query for the handler's version, and records which copy of XLA sent it. Returns
/// `false` for a call.
///
/// # Safety
/// `frame` is a call frame of XLA FFI.
unsafe fn answer_metadata(frame: &XLA_FFI_CallFrame) -> bool {
    let mut link = frame.extension_start;
    while !link.is_null() {
        // SAFETY: the links live as long as the call, and each starts with the base struct. The
        // link of this kind is a metadata extension, whose struct may be written.
        unsafe {
            if (*link).kind == XLA_FFI_EXTENSION_METADATA {
                let metadata = (*link.cast::<XLA_FFI_Metadata_Extension>()).metadata;
                (*metadata).api_version.major_version = FFI_VERSION.0;
                (*metadata).api_version.minor_version = FFI_VERSION.1;
                (*metadata).traits = 0;
                if let Some(type_id) = REGISTERING.get() {
                    let mut types = TABLE_TYPES.write().unwrap_or_else(PoisonError::into_inner);
                    types.push((frame.api.addr(), type_id));
                }
                return true;
            }
            link = (*link).next;
        }
    }
    false
}

/// Returns the device stream of a call.
///
/// # Safety
/// `frame` is a call frame of the execute stage.
unsafe fn raw_stream(frame: &XLA_FFI_CallFrame) -> Result<RawStream, String> {
    let mut args = XLA_FFI_Stream_Get_Args::new();
    args.ctx = frame.ctx;
    // SAFETY: the function table and the context belong to the frame. The error is not used again.
    unsafe {
        let get = (*frame.api)
            .XLA_FFI_Stream_Get
            .ok_or("this version of XLA does not provide the stream of a call")?;
        if !is_success(frame.api, get(&mut args)) {
            return Err("XLA returned no stream for the call".to_owned());
        }
    }
    Ok(args.stream)
}

/// Reads arguments, results and attributes of a call.
///
/// # Safety
/// `frame` is a call frame of the execute stage, which outlives `'a`.
unsafe fn decode<'a>(frame: &'a XLA_FFI_CallFrame) -> Result<HostCallFrame<'a>, String> {
    // SAFETY: a frame has as many types and values as it declares, and a value of type buffer
    // points to a buffer with the declared type and shape. XLA neither frees nor uses the buffers
    // during the call. Results do not overlap each other by construction; the check below ensures
    // that they do not overlap arguments, before any reference to them is used.
    unsafe {
        let args = buffers(&frame.args)?;
        let results = buffers(&frame.rets)?;
        for result in &results {
            if args.iter().any(|arg| arg.overlaps(result)) {
                return Err("a result shares memory with an argument".to_owned());
            }
        }
        Ok(HostCallFrame {
            args: args.into_iter().map(|raw| raw.view()).collect(),
            results: results.into_iter().map(|raw| raw.view_mut()).collect(),
            attributes: attributes(&frame.attrs),
        })
    }
}

/// An argument or result before references to it exist.
pub(crate) struct RawBuffer {
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
    pub(crate) data: *mut u8,
    /// Bytes of the buffer.
    pub(crate) len: usize,
}

impl RawBuffer {
    fn overlaps(&self, other: &RawBuffer) -> bool {
        let is_empty = self.len == 0 || other.len == 0;
        let (start, other_start) = (self.data.addr(), other.data.addr());
        !is_empty && start < other_start + other.len && other_start < start + self.len
    }

    /// A view of a copy of its elements.
    fn with_bytes(self, bytes: &[u8]) -> HostView<'_> {
        HostView { dtype: self.dtype, shape: self.shape, bytes }
    }

    /// A view of other memory for its elements.
    fn with_bytes_mut<'a>(&self, bytes: &'a mut [u8]) -> HostViewMut<'a> {
        HostViewMut { dtype: self.dtype, shape: self.shape.clone(), bytes }
    }

    /// # Safety
    /// The memory is valid for `'a`.
    unsafe fn view<'a>(self) -> HostView<'a> {
        // SAFETY: the caller guarantees the requirements in `# Safety` above.
        let bytes = unsafe { slice(self.data.cast_const(), self.len) };
        HostView { dtype: self.dtype, shape: self.shape, bytes }
    }

    /// # Safety
    /// The memory is valid for `'a` and not referred to by anything else.
    unsafe fn view_mut<'a>(self) -> HostViewMut<'a> {
        let bytes: &mut [u8] = if self.len == 0 {
            &mut []
        } else {
            // SAFETY: the caller guarantees the requirements in `# Safety` above.
            unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
        };
        HostViewMut { dtype: self.dtype, shape: self.shape, bytes }
    }
}

/// # Safety
/// `values` is the list of arguments or results of a living call frame.
pub(crate) unsafe fn buffers(values: &XLA_FFI_Values) -> Result<Vec<RawBuffer>, String> {
    let len = usize::try_from(values.size).unwrap_or_default();
    // SAFETY: there are `size` types and values; a value of type buffer points to a buffer, with
    // `rank` dimensions.
    unsafe {
        let (types, values) = (slice(values.types, len), slice(values.values, len));
        let each = types.iter().zip(values).map(|(&kind, &value)| {
            if kind != XLA_FFI_BUFFER {
                return Err(format!("host functions take buffers only, not values of kind {kind}"));
            }
            let buffer = &*value.cast::<XLA_FFI_Buffer>();
            let dtype = dtype::from_xla(buffer.dtype).map_err(|error| error.to_string())?;
            let dims = slice(buffer.dims, usize::try_from(buffer.rank).unwrap_or_default());
            let shape: Shape = dims.iter().map(|&dim| dim as usize).collect();
            let len = stored_size(dtype, shape.size());
            Ok(RawBuffer { dtype, shape, data: buffer.data, len })
        });
        each.collect()
    }
}

/// # Safety
/// `attrs` is the list of attributes of a call frame that outlives `'a`.
pub(crate) unsafe fn attributes<'a>(attrs: &'a XLA_FFI_Attrs) -> Vec<(&'a str, HostAttribute<'a>)> {
    let len = usize::try_from(attrs.size).unwrap_or_default();
    // SAFETY: there are `size` types, names and values; names and strings are spans of text, and
    // scalars are as wide as their type.
    unsafe {
        let names = slice(attrs.names, len);
        let values = slice(attrs.types, len).iter().zip(slice(attrs.attrs, len));
        let each = names.iter().zip(values).filter_map(|(&name, (&kind, &value))| {
            let value = match kind {
                xla_ffi_attr::STRING => HostAttribute::Str(span(value.cast())?),
                xla_ffi_attr::SCALAR => scalar(&*value.cast::<XLA_FFI_Scalar>())?,
                _ => return None,
            };
            Some((span(name)?, value))
        });
        each.collect()
    }
}

/// # Safety
/// `span` is a span that outlives `'a`.
unsafe fn span<'a>(span: *const XLA_FFI_ByteSpan) -> Option<&'a str> {
    // SAFETY: the caller guarantees the requirements in `# Safety` above.
    unsafe { std::str::from_utf8(slice((*span).ptr, (*span).len)).ok() }
}

/// # Safety
/// `scalar.value` points to a value of the type that `scalar` names.
unsafe fn scalar<'a>(scalar: &XLA_FFI_Scalar) -> Option<HostAttribute<'a>> {
    let value = scalar.value;
    // SAFETY: the caller guarantees the type; the read does not rely on alignment.
    unsafe {
        Some(match dtype::from_xla(scalar.dtype).ok()? {
            DType::Pred => HostAttribute::Bool(value.cast::<u8>().read() != 0),
            DType::S8 => HostAttribute::Int(value.cast::<i8>().read().into()),
            DType::S16 => HostAttribute::Int(value.cast::<i16>().read_unaligned().into()),
            DType::S32 => HostAttribute::Int(value.cast::<i32>().read_unaligned().into()),
            DType::S64 => HostAttribute::Int(value.cast::<i64>().read_unaligned()),
            DType::U8 => HostAttribute::Int(value.cast::<u8>().read().into()),
            DType::U16 => HostAttribute::Int(value.cast::<u16>().read_unaligned().into()),
            DType::U32 => HostAttribute::Int(value.cast::<u32>().read_unaligned().into()),
            DType::U64 => {
                HostAttribute::Int(i64::try_from(value.cast::<u64>().read_unaligned()).ok()?)
            }
            DType::F32 => HostAttribute::Float(value.cast::<f32>().read_unaligned().into()),
            DType::F64 => HostAttribute::Float(value.cast::<f64>().read_unaligned()),
            _ => return None,
        })
    }
}

/// The function of a call: from the table of its execution, else from the process-wide table.
///
/// # Safety
/// `frame` is a call frame of the execute stage.
unsafe fn find_function(
    frame: &XLA_FFI_CallFrame,
    call: &HostCallFrame<'_>,
) -> Result<Arc<dyn HostHandler>, String> {
    let Some(HostAttribute::Int(id)) = call.attribute("id") else {
        return Err(format!("a call of {HOST_CALL_TARGET} has no integer attribute `id`"));
    };
    // SAFETY: the caller guarantees the requirements in `# Safety` above.
    let own = unsafe { execution_table(frame)? }.and_then(|table| table.get(id));
    own.or_else(|| PROCESS_WIDE.get(id))
        .ok_or_else(|| format!("no host function is registered with id {id}"))
}

/// The table that was given with the execution, if any.
///
/// # Safety
/// `frame` is a call frame of the execute stage.
unsafe fn execution_table(frame: &XLA_FFI_CallFrame) -> Result<Option<&HostCallTable>, String> {
    let types = TABLE_TYPES.read().unwrap_or_else(PoisonError::into_inner);
    let address = frame.api.addr();
    let found = types.iter().find(|(api, _)| *api == address).map(|(_, type_id)| *type_id);
    drop(types);
    let mut type_id =
        found.ok_or("this version of XLA did not request the version of the handler")?;
    let mut args = XLA_FFI_ExecutionContext_Get_Args::new();
    args.ctx = frame.ctx;
    args.type_id = &raw mut type_id;
    // SAFETY: the function table and the context belong to the frame, and programs that call this
    // function are never executed without a context. Only `ExecutionContext` adds data of this
    // type, and it keeps the table alive until the execution has ended. An error reports that there
    // is no such data, and is not used again.
    unsafe {
        let get = (*frame.api).XLA_FFI_ExecutionContext_Get;
        let get = get.ok_or("this version of XLA does not support execution contexts")?;
        if !is_success(frame.api, get(&mut args)) {
            return Ok(None);
        }
        Ok(args.data.cast::<HostCallTable>().as_ref())
    }
}

/// The message of a panic.
fn panic_message(panic: Box<dyn Any + Send>) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    format!("a host function panicked: {}", text.as_deref().unwrap_or("no message"))
}

/// Returns whether a function of XLA returned no error, and destroys the error otherwise.
///
/// # Safety
/// `api` is the function table of a call frame, and `error` the result of one of its functions, which
/// is not used afterwards.
pub(crate) unsafe fn is_success(api: *const XLA_FFI_Api, error: *mut XLA_FFI_Error) -> bool {
    if error.is_null() {
        return true;
    }
    let mut destroy = XLA_FFI_Error_Destroy_Args::new();
    destroy.error = error;
    // SAFETY: the caller guarantees the requirements in `# Safety` above.
    unsafe {
        if let Some(destroy_error) = (*api).XLA_FFI_Error_Destroy {
            destroy_error(&mut destroy);
        }
    }
    false
}

/// Makes an error that XLA owns.
///
/// # Safety
/// `api` is the function table of a call frame.
unsafe fn create_error(
    api: *const XLA_FFI_Api,
    code: c_enum,
    message: String,
) -> *mut XLA_FFI_Error {
    let message = CString::new(message.replace('\0', "")).unwrap_or_default();
    let mut args = XLA_FFI_Error_Create_Args::new();
    args.message = message.as_ptr();
    args.errc = code;
    // SAFETY: the table is alive, and XLA copies the message during the call. Every version has the
    // function. Without it, an error could only be returned as success, so the process ends
    // instead, as for a panic that reaches a C function.
    unsafe {
        let create =
            (*api).XLA_FFI_Error_Create.expect("every version of XLA FFI has the function");
        create(&mut args)
    }
}
