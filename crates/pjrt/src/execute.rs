//! Executing programs: the hot path of everything above this crate.
//!
//! An execution makes one call to the plugin, takes no lock, and allocates only the returned buffers,
//! whose types were read after the compilation.

use std::borrow::Cow;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use nxla_tensor::{DType, Shape};
use smallvec::SmallVec;

use crate::buffer::Buffer;
use crate::error::Error;
use crate::event::Event;
use crate::executable::{Compiled, LoadedExecutable};
use crate::ffi::ExecutionContext;
use crate::foreign::Lender;
use crate::options::ExecuteOptions;
use crate::sys::*;
use crate::traffic;

impl LoadedExecutable {
    /// Starts the program on one device and returns its results, without waiting for them.
    ///
    /// Arguments that the program declares as donated (`tf.aliasing_output`,
    /// `jax.buffer_donor`) are deleted, unless [`ExecuteOptions::non_donatable`] lists them. If other
    /// code can read the memory of an argument, the program works on a copy: the argument is a
    /// [view](crate::Client::view), is [lent](crate::Buffer::lend), or shares memory with a host
    /// tensor.
    ///
    /// # Errors
    /// Returns [`Error::ArgumentCount`], [`Error::ForeignObject`], [`Error::DeviceCount`] for a
    /// program of several devices, or the plugin's error, for example about a deleted argument or a
    /// wrong size. Reading a result returns the errors of the running program.
    #[inline]
    pub fn execute(
        &self,
        args: &[&Buffer],
        options: &ExecuteOptions<'_>,
    ) -> Result<Vec<Buffer>, Error> {
        let (outputs, Started { event, used }) = self.execute_on_one(args, options)?;
        // SAFETY: the plugin has just passed ownership of the event.
        if let Some(event) = unsafe { Event::from_raw_if_pending(event, self.client()) } {
            self.client().track(&event, Some(used))?;
        }
        Ok(outputs)
    }

    /// [`execute`](LoadedExecutable::execute), with an event for the end of the execution: for programs
    /// that are run for their effects and may have no results to wait for.
    ///
    /// # Errors
    /// Returns the errors of [`execute`](LoadedExecutable::execute).
    pub fn execute_with_event(
        &self,
        args: &[&Buffer],
        options: &ExecuteOptions<'_>,
    ) -> Result<(Vec<Buffer>, Event), Error> {
        let (outputs, Started { event, used }) = self.execute_on_one(args, options)?;
        // SAFETY: the plugin has just passed ownership of the event.
        let event = unsafe { Event::from_raw(event, self.client()) };
        let function = PJRT_LoadedExecutable_Execute_Args::FUNCTION;
        let event = event.ok_or_else(|| self.client().plugin().null_result_error(function))?;
        self.client().track(&event, Some(used))?;
        Ok((outputs, event))
    }

    #[inline]
    fn execute_on_one(
        &self,
        args: &[&Buffer],
        options: &ExecuteOptions<'_>,
    ) -> Result<(Vec<Buffer>, Started), Error> {
        let inner = &*self.inner;
        let [device] = inner.devices[..] else {
            return Err(inner.device_count(inner.devices.len(), 1));
        };
        let inputs = inner.check_args(args)?;
        let mut outputs = Pointers::from_elem(null_mut(), inner.outputs.len());
        let context = inner.create_context(options)?;
        let mut event = null_mut();
        let launch = Launch {
            argument_lists: &[inputs.as_ptr()],
            output_lists: &[outputs.as_mut_ptr()],
            num_args: inputs.len(),
            events: &raw mut event,
            context: context.as_ref().map_or(null_mut(), ExecutionContext::as_ptr),
        };
        let (kept, lenders) = (kept_inputs(&[args], options), lenders(args));
        // SAFETY: the lists have the lengths that the program expects, on one device.
        unsafe { inner.launch(&launch, &kept) }.map_err(|error| cause(error, args))?;
        // SAFETY: this function owns the buffers.
        let outputs = unsafe { inner.take_outputs(&outputs, device) };
        Ok((
            outputs,
            Started { event, used: ExecutionResources { _context: context, _lenders: lenders } },
        ))
    }

    /// Starts a program of several partitions: one list of arguments for each of its
    /// devices, and as many lists of results.
    ///
    /// # Errors
    /// Returns the errors of [`execute`](LoadedExecutable::execute), and [`Error::DeviceCount`] if
    /// the number of lists is not the number of devices.
    pub fn execute_on_all(
        &self,
        args: &[&[&Buffer]],
        options: &ExecuteOptions<'_>,
    ) -> Result<Vec<Vec<Buffer>>, Error> {
        let inner = &*self.inner;
        if args.len() != inner.devices.len() {
            return Err(inner.device_count(inner.devices.len(), args.len()));
        }
        let num_args = args.first().map_or(0, |list| list.len());
        let mut inputs = Vec::with_capacity(args.len());
        for list in args {
            if list.len() != num_args {
                return Err(inner.argument_count(num_args, list.len()));
            }
            inputs.push(inner.check_args(list)?);
        }
        let mut outputs = vec![vec![null_mut(); inner.outputs.len()]; args.len()];
        let mut events = vec![null_mut(); args.len()];
        let context = inner.create_context(options)?;
        let argument_lists: Vec<_> = inputs.iter().map(|list| list.as_ptr()).collect();
        let output_lists: Vec<_> = outputs.iter_mut().map(|list| list.as_mut_ptr()).collect();
        let launch = Launch {
            argument_lists: &argument_lists,
            output_lists: &output_lists,
            num_args,
            events: events.as_mut_ptr(),
            context: context.as_ref().map_or(null_mut(), ExecutionContext::as_ptr),
        };
        let kept = kept_inputs(args, options);
        let lenders = args.iter().flat_map(|list| lenders(list)).collect();
        // SAFETY: there is one list of each kind per device, with the lengths that the program
        // expects.
        unsafe { inner.launch(&launch, &kept)? };
        let devices = inner.devices.iter();
        let outputs = outputs
            .iter()
            .zip(devices)
            // SAFETY: this function owns the buffers.
            .map(|(raw, &device)| unsafe { inner.take_outputs(raw, device) })
            .collect();
        let used = Arc::new(ExecutionResources { _context: context, _lenders: lenders });
        for event in events {
            // SAFETY: this function owns the events.
            if let Some(event) = unsafe { Event::from_raw_if_pending(event, &inner.client) } {
                inner.client.track(&event, Some(used.clone()))?;
            }
        }
        Ok(outputs)
    }
}

/// Buffers of a plugin. Most programs have so few arguments and results that the list needs no
/// allocation.
type Pointers = SmallVec<[*mut PJRT_Buffer; 64]>;

/// An execution that may not be over, on one device.
struct Started {
    /// Ours, or null.
    event: *mut PJRT_Event,
    used: ExecutionResources,
}

/// Objects that an execution uses until its end.
struct ExecutionResources {
    _context: Option<ExecutionContext>,
    _lenders: Vec<Lender>,
}

/// The owners of the memory of arguments that belongs to other libraries. The plugin returns this
/// memory when the buffer is deleted, which can precede the end of the program.
#[inline]
fn lenders(args: &[&Buffer]) -> Vec<Lender> {
    args.iter().filter_map(|arg| arg.lender()).collect()
}

/// The positions of arguments that the program must not overwrite: the options list them, or other
/// code can read their memory.
#[inline]
fn kept_inputs<'a>(lists: &[&[&Buffer]], options: &ExecuteOptions<'a>) -> Cow<'a, [i64]> {
    let mut kept = Cow::Borrowed(options.non_donatable);
    for list in lists {
        for (index, _) in list.iter().enumerate().filter(|(_, arg)| arg.is_shared_outside()) {
            if !kept.contains(&(index as i64)) {
                kept.to_mut().push(index as i64);
            }
        }
    }
    kept
}

/// The pointers of one execution.
struct Launch<'a> {
    argument_lists: &'a [*const *mut PJRT_Buffer],
    output_lists: &'a [*mut *mut PJRT_Buffer],
    num_args: usize,
    /// Room for one event per device.
    events: *mut *mut PJRT_Event,
    context: *mut PJRT_ExecuteContext,
}

/// Returns the error of a deleted or donated argument, in place of the plugin's error.
fn cause(error: Error, args: &[&Buffer]) -> Error {
    args.iter().fold(error, |error, arg| arg.cause(error))
}

impl Compiled {
    /// Checks number and origin of the arguments and collects their pointers.
    #[inline]
    fn check_args(&self, args: &[&Buffer]) -> Result<Pointers, Error> {
        if let Some(expected) = self.facts.num_args.filter(|&expected| expected != args.len()) {
            return Err(self.argument_count(expected, args.len()));
        }
        let mut pointers = Pointers::with_capacity(args.len());
        for (index, arg) in args.iter().enumerate() {
            if !arg.client().is(&self.client) {
                return Err(Error::ForeignObject { what: format!("argument {index}") });
            }
            arg.check_not_donated()?;
            pointers.push(arg.raw()?);
        }
        Ok(pointers)
    }

    /// Calls the plugin.
    ///
    /// # Safety
    /// There is one argument list of `num_args` living buffers and one output list with room for
    /// all results and one event per device.
    #[inline]
    unsafe fn launch(&self, launch: &Launch<'_>, kept: &[i64]) -> Result<(), Error> {
        let mut execute_options = PJRT_ExecuteOptions::new();
        execute_options.non_donatable_input_indices = kept.as_ptr();
        execute_options.num_non_donatable_input_indices = kept.len();
        execute_options.context = launch.context;
        let mut args = PJRT_LoadedExecutable_Execute_Args::new();
        args.executable = self.as_ptr();
        args.options = &raw mut execute_options;
        args.argument_lists = launch.argument_lists.as_ptr();
        args.num_devices = launch.argument_lists.len();
        args.num_args = launch.num_args;
        args.output_lists = launch.output_lists.as_ptr();
        args.device_complete_events = launch.events;
        // SAFETY: the executable is alive, the caller guarantees the lists, and all memory that
        // they refer to outlives the call.
        unsafe { self.call(&mut args)? };
        traffic::count_started();
        Ok(())
    }

    /// The context with the host functions of a program that calls some. An execution without
    /// functions gets a context too, because XLA crashes without one.
    #[inline]
    fn create_context(
        &self,
        options: &ExecuteOptions<'_>,
    ) -> Result<Option<ExecutionContext>, Error> {
        if !self.facts.calls_host {
            return Ok(None);
        }
        let table = options.host_calls.cloned().unwrap_or_default();
        ExecutionContext::new(&self.client, table).map(Some)
    }

    /// Wraps the results of a successful execution.
    ///
    /// # Safety
    /// `raw` holds the results on `device`, and they are ours.
    #[inline]
    unsafe fn take_outputs(&self, raw: &[*mut PJRT_Buffer], device: usize) -> Vec<Buffer> {
        let wrap = |(&raw, (dtype, shape)): (&*mut PJRT_Buffer, &(DType, Shape))| {
            let raw = NonNull::new(raw).expect("a successful execution fills the output list");
            // SAFETY: the caller guarantees the buffer; its type was read from the program.
            unsafe { Buffer::new(raw, self.client.clone(), device, *dtype, shape.clone()) }
        };
        raw.iter().zip(&self.outputs).map(wrap).collect()
    }

    #[cold]
    fn argument_count(&self, expected: usize, actual: usize) -> Error {
        Error::ArgumentCount { executable: self.name.clone(), expected, actual }
    }

    #[cold]
    fn device_count(&self, expected: usize, actual: usize) -> Error {
        Error::DeviceCount { executable: self.name.clone(), expected, actual }
    }
}
