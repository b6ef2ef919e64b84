//! Options of compilation and execution, and the protocol buffer of compile options.
//!
//! PJRT takes compile options as a serialized `CompileOptionsProto`. The few fields that are
//! used are written by hand, which spares the build a code generator: a message is a sequence of
//! fields, each a key (`number << 3 | wire type`) and a value.

use std::sync::Arc;

use crate::client::PjrtDevice;
use crate::error::Error;
use crate::host::HostCallTable;
use crate::value::NamedValue;

/// Options of a compilation. The default is one device, chosen by the plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct CompileOptions {
    /// Over how many devices the program is partitioned.
    pub num_partitions: usize,
    /// [Ids](PjrtDevice::id) of the devices to run on: `num_partitions` of them, or none to let the
    /// plugin choose.
    pub device_ids: Vec<i32>,
    /// Partition with Shardy instead of GSPMD; the module's shardings must be of that kind.
    pub shardy: bool,
    /// XLA's debug options by name, such as `xla_cpu_enable_fast_math`. Lists are written as
    /// text, separated by commas.
    pub overrides: Vec<(String, NamedValue)>,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions {
            num_partitions: 1,
            device_ids: Vec::new(),
            shardy: false,
            overrides: Vec::new(),
        }
    }
}

impl CompileOptions {
    /// Options for one device.
    #[must_use]
    pub fn on(device: &PjrtDevice) -> CompileOptions {
        CompileOptions { device_ids: vec![device.id()], ..CompileOptions::default() }
    }

    /// The serialized `CompileOptionsProto`.
    ///
    /// # Errors
    /// Returns [`Error::Option`] for a count of 0, on which XLA ends the process. XLA checks the
    /// other options.
    pub(crate) fn to_proto(&self) -> Result<Vec<u8>, Error> {
        if self.num_partitions == 0 {
            let (name, reason) = ("num_partitions", "must be an integer of at least 1");
            return Err(Error::Option { name, reason, given: "0".to_owned() });
        }
        let mut build = Message::default();
        build.integer(4, 1);
        build.integer(5, self.num_partitions as u64);
        if self.num_partitions > 1 {
            build.integer(6, 1);
        }
        if !self.device_ids.is_empty() {
            build.message(9, &self.device_assignment());
        }
        if self.shardy {
            build.integer(19, 1);
        }
        let mut options = Message::default();
        options.message(3, &build);
        for (name, value) in &self.overrides {
            let mut entry = Message::default();
            entry.bytes(1, name.as_bytes());
            entry.message(2, &override_value(value));
            options.message(7, &entry);
        }
        Ok(options.0)
    }

    /// A `DeviceAssignmentProto`: one replica, and for each partition its device.
    fn device_assignment(&self) -> Message {
        let mut assignment = Message::default();
        assignment.integer(1, 1);
        assignment.integer(2, self.num_partitions as u64);
        for &id in &self.device_ids {
            let mut packed = Message::default();
            packed.varint(i64::from(id) as u64);
            let mut computation = Message::default();
            computation.message(1, &packed);
            assignment.message(3, &computation);
        }
        assignment
    }
}

/// An `OptionOverrideProto`.
fn override_value(value: &NamedValue) -> Message {
    let mut message = Message::default();
    match value {
        NamedValue::String(text) => message.bytes(1, text.as_bytes()),
        NamedValue::Bool(bool) => message.integer(2, u64::from(*bool)),
        NamedValue::Int64(int) => message.integer(3, *int as u64),
        NamedValue::Float(float) => message.double(4, f64::from(*float)),
        NamedValue::Int64List(list) => {
            let texts: Vec<String> = list.iter().map(i64::to_string).collect();
            message.bytes(1, texts.join(",").as_bytes());
        }
    }
    message
}

/// A protocol buffer message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// Writes a varint: seven bits per byte, the lowest bits first. The high bit of a byte is set
    /// if more bytes follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    fn integer(&mut self, field: u64, value: u64) {
        self.key(field, 0);
        self.varint(value);
    }

    fn double(&mut self, field: u64, value: f64) {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.key(field, 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    fn message(&mut self, field: u64, value: &Message) {
        self.bytes(field, &value.0);
    }
}

/// Options of an execution. By default the arguments that the program declares as donated are
/// donated.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExecuteOptions<'a> {
    /// Indices of arguments that must survive, although the program declares them as donated.
    pub non_donatable: &'a [i64],
    /// Host functions of this execution; they come before the process-wide ones of
    /// [`register_host_fn`](crate::register_host_fn).
    pub host_calls: Option<&'a Arc<HostCallTable>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_options_encode_to_known_bytes() {
        let expected = [0x1a, 0x04, 0x20, 0x01, 0x28, 0x01];
        assert_eq!(CompileOptions::default().to_proto().unwrap(), expected);
    }

    #[test]
    fn every_field_is_encoded() {
        let options = CompileOptions {
            num_partitions: 2,
            device_ids: vec![3, 300],
            shardy: true,
            overrides: vec![
                ("a".to_owned(), NamedValue::Bool(true)),
                ("b".to_owned(), NamedValue::Int64(-1)),
                ("c".to_owned(), NamedValue::Float(0.5)),
                ("d".to_owned(), NamedValue::Int64List(vec![1, -2])),
            ],
        };
        let mut expected = vec![0x1a, 26, 0x20, 1, 0x28, 2, 0x30, 1, 0x4a, 15];
        expected.extend([0x08, 1, 0x10, 2, 0x1a, 3, 0x0a, 1, 3, 0x1a, 4, 0x0a, 2, 0xac, 2]);
        expected.extend([0x98, 1, 1]);
        expected.extend([0x3a, 7, 0x0a, 1, b'a', 0x12, 2, 0x10, 1]);
        expected.extend([0x3a, 16, 0x0a, 1, b'b', 0x12, 11, 0x18]);
        expected.extend([0xff; 9]);
        expected.push(1);
        expected.extend([0x3a, 14, 0x0a, 1, b'c', 0x12, 9, 0x21]);
        expected.extend(0.5_f64.to_le_bytes());
        expected.extend([0x3a, 11, 0x0a, 1, b'd', 0x12, 6, 0x0a, 4]);
        expected.extend(b"1,-2");
        assert_eq!(options.to_proto().unwrap(), expected);
    }

    #[test]
    fn partition_count_of_zero_is_rejected() {
        let none = CompileOptions { num_partitions: 0, ..CompileOptions::default() };
        let text = none.to_proto().unwrap_err().to_string();
        assert_eq!(text, "option num_partitions: must be an integer of at least 1; got 0");
    }
}
