//! A macro that declares option structs once for the backend, Rust and Python.

/// Declares an option struct. `name(Given): Type = default` declares a field and a method that sets
/// it from any value that converts to `Given`.
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
