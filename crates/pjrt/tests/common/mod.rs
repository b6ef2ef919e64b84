//! Helpers of the tests: the plugin, a client, and functions that make and run programs.

#![allow(dead_code, reason = "every test file uses its own part")]

use std::io::Write;
use std::sync::OnceLock;

use nxla_pjrt::{
    Buffer, Client, CompileOptions, ExecuteOptions, LoadedExecutable, Plugin, discover,
};
use nxla_tensor::{Element, HostTensor, Shape};

/// Returns whether a plugin is installed; if not, prints a notice that libtest does not capture.
pub(crate) fn has_plugin() -> bool {
    static HAS_PLUGIN: OnceLock<bool> = OnceLock::new();
    *HAS_PLUGIN.get_or_init(|| match discover(None) {
        Ok(_) => true,
        Err(error) => {
            let notice = format!("skipped: tests of plugins, because of {error}\n");
            std::io::stderr().write_all(notice.as_bytes()).unwrap();
            false
        }
    })
}

/// Returns from the test if no plugin is installed.
macro_rules! require_plugin {
    () => {
        if !common::has_plugin() {
            return;
        }
    };
}

/// Returns the plugin.
pub(crate) fn plugin() -> Plugin {
    Plugin::load(discover(None).unwrap()).unwrap()
}

/// Returns a client with one device, which all tests of a process share.
pub(crate) fn client() -> Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| Client::new(&plugin(), &[]).unwrap()).clone()
}

pub(crate) fn compile(text: &str) -> LoadedExecutable {
    client().compile(text, &CompileOptions::default()).unwrap()
}

/// `x + 1` for one `f32`.
pub(crate) const INCREMENT: &str = "
module @increment {
  func.func public @main(%x: tensor<f32>) -> tensor<f32> {
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %y = stablehlo.add %x, %one : tensor<f32>
    return %y : tensor<f32>
  }
}";

/// Builds `x + 1` for elements of `f32`, whose sums may overwrite `x`.
pub(crate) fn donating_program(size: usize) -> LoadedExecutable {
    compile(&format!(
        "func.func @main(%x: tensor<{size}xf32> {{tf.aliasing_output = 0 : i32}})
             -> tensor<{size}xf32> {{
           %one = stablehlo.constant dense<1.0> : tensor<{size}xf32>
           %y = stablehlo.add %x, %one : tensor<{size}xf32>
           return %y : tensor<{size}xf32>
         }}"
    ))
}

pub(crate) fn tensor<T: Element>(elements: &[T], shape: impl Into<Shape>) -> HostTensor {
    HostTensor::from_slice(elements, shape).unwrap()
}

/// A tensor on the first device.
pub(crate) fn buffer<T: Element>(elements: &[T], shape: impl Into<Shape>) -> Buffer {
    let client = client();
    client.buffer_from_host(&tensor(elements, shape), &client.devices()[0]).unwrap()
}

pub(crate) fn values<T: Element>(buffer: &Buffer) -> Vec<T> {
    buffer.to_host().unwrap().to_vec().unwrap()
}

pub(crate) fn run(program: &LoadedExecutable, args: &[&Buffer]) -> Vec<Buffer> {
    program.execute(args, &ExecuteOptions::default()).unwrap()
}
