//! Options of functions, declared once for the engine, for Rust and for Python.

/// Declares a struct of options. `name(Given): Type = default` is a field, and a method that sets it
/// from anything that becomes a `Given`.
macro_rules! options {
    (
        $(#[$doc:meta])*
        pub struct $name:ident {
            $($(#[$field_doc:meta])* $field:ident($given:ty): $ty:ty = $default:expr,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $ty,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $name {
            $(
                $(#[$field_doc])*
                #[must_use]
                pub fn $field(mut self, $field: impl Into<$given>) -> Self {
                    self.$field = <$ty>::from($field.into());
                    self
                }
            )*
        }
    };
}
pub(super) use options;
