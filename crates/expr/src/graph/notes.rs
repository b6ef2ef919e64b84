//! What users write on values: a map from names to numbers, texts, and lists and maps of such.
//!
//! Notes are part of what a node is, so two that differ are two nodes, and programs that differ in a
//! note have different digests. Nothing that computes looks at them.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// How deep lists and maps may nest in notes: what reads and writes them calls itself.
pub const MAX_NOTE_DEPTH: usize = 32;

/// A value in [`Notes`]. Numbers compare by their bits, so that a note equals itself.
///
/// ```
/// use nxla_expr::Note;
///
/// let sizes = Note::from([Note::from(3), Note::from(2.5), Note::from("wide")]);
/// assert!(matches!(&sizes, Note::List(items) if items.len() == 3));
/// ```
#[derive(Clone, Debug)]
pub enum Note {
    /// That there is no value.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A real number.
    Float(f64),
    /// A text.
    Text(Arc<str>),
    /// Values in order.
    List(Vec<Note>),
    /// Values by name.
    Map(Notes),
}

impl Note {
    /// How deep lists and maps nest in this: 0 for a number.
    fn depth(&self) -> usize {
        // Whoever made this need not have been asked about its depth yet.
        let mut deepest = 0;
        let mut waiting = vec![(self, 0)];
        while let Some((note, depth)) = waiting.pop() {
            deepest = deepest.max(depth);
            match note {
                Note::List(items) => waiting.extend(items.iter().map(|item| (item, depth + 1))),
                Note::Map(notes) => {
                    waiting.extend(notes.iter().map(|(_, item)| (item, depth + 1)));
                }
                Note::Null | Note::Bool(_) | Note::Int(_) | Note::Float(_) | Note::Text(_) => {}
            }
        }
        deepest
    }
}

impl PartialEq for Note {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Note::Null, Note::Null) => true,
            (Note::Bool(a), Note::Bool(b)) => a == b,
            (Note::Int(a), Note::Int(b)) => a == b,
            (Note::Float(a), Note::Float(b)) => a.to_bits() == b.to_bits(),
            (Note::Text(a), Note::Text(b)) => a == b,
            (Note::List(a), Note::List(b)) => a == b,
            (Note::Map(a), Note::Map(b)) => a == b,
            (
                Note::Null
                | Note::Bool(_)
                | Note::Int(_)
                | Note::Float(_)
                | Note::Text(_)
                | Note::List(_)
                | Note::Map(_),
                _,
            ) => false,
        }
    }
}

impl Eq for Note {}

impl Hash for Note {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Note::Null => {}
            Note::Bool(value) => value.hash(state),
            Note::Int(value) => value.hash(state),
            Note::Float(value) => value.to_bits().hash(state),
            Note::Text(text) => text.hash(state),
            Note::List(items) => items.hash(state),
            Note::Map(notes) => notes.hash(state),
        }
    }
}

macro_rules! note_from {
    ($($from:ty => |$value:ident| $note:expr;)*) => {
        $(
            impl From<$from> for Note {
                fn from($value: $from) -> Note {
                    $note
                }
            }
        )*
    };
}

note_from! {
    bool => |value| Note::Bool(value);
    i32 => |value| Note::Int(value.into());
    u32 => |value| Note::Int(value.into());
    i64 => |value| Note::Int(value);
    f32 => |value| Note::Float(value.into());
    f64 => |value| Note::Float(value);
    &str => |value| Note::Text(value.into());
    String => |value| Note::Text(value.into());
    Arc<str> => |value| Note::Text(value);
    Vec<Note> => |value| Note::List(value);
    Notes => |value| Note::Map(value);
}

impl<const N: usize> From<[Note; N]> for Note {
    fn from(items: [Note; N]) -> Note {
        Note::List(items.into())
    }
}

/// What is written on a value: notes by name, in the order of the names.
///
/// ```
/// use nxla_expr::{Note, Notes};
///
/// let notes = Notes::from([("layer", Note::from(3)), ("kind", "attention".into())]);
/// assert_eq!(notes.get("layer"), Some(&Note::Int(3)));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Notes(BTreeMap<Arc<str>, Note>);

impl Notes {
    /// Nothing is written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The note of this name.
    pub fn get(&self, name: &str) -> Option<&Note> {
        self.0.get(name)
    }

    /// Writes a note; gives the one that had the name.
    pub fn insert(&mut self, name: impl Into<Arc<str>>, note: impl Into<Note>) -> Option<Note> {
        self.0.insert(name.into(), note.into())
    }

    /// The notes in the order of their names.
    pub fn iter(&self) -> btree_map::Iter<'_, Arc<str>, Note> {
        self.0.iter()
    }

    /// How deep lists and maps nest: 0 for nothing but numbers and texts.
    pub fn depth(&self) -> usize {
        self.0.values().map(Note::depth).max().unwrap_or(0)
    }
}

impl<'a> IntoIterator for &'a Notes {
    type Item = (&'a Arc<str>, &'a Note);
    type IntoIter = btree_map::Iter<'a, Arc<str>, Note>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: Into<Arc<str>>, V: Into<Note>> FromIterator<(K, V)> for Notes {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(notes: I) -> Notes {
        Notes(notes.into_iter().map(|(name, note)| (name.into(), note.into())).collect())
    }
}

impl<K: Into<Arc<str>>, V: Into<Note>, const N: usize> From<[(K, V); N]> for Notes {
    fn from(notes: [(K, V); N]) -> Notes {
        notes.into_iter().collect()
    }
}
