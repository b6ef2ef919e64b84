#![doc = include_str!("names.md")]
