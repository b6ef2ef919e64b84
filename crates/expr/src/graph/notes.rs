//! Notes of users on values: maps from names to scalars, strings, and lists and maps of notes.
//!
//! Notes are part of the identity of a node: nodes with different notes are distinct, and so are
//! the digests of their programs. Computations ignore notes.

use std::any::Any;
use std::collections::BTreeMap;
use std::collections::btree_map;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The limit for the nesting of lists and maps, because reading and writing is recursive.
pub const MAX_NOTE_DEPTH: usize = 32;

/// A value of the host language in a note.
pub trait HostValue: Any + Send + Sync {
    /// A number that no other value has while this one lives.
    fn identity(&self) -> usize;
}

/// A shared [`HostValue`], equal to itself alone.
#[derive(Clone)]
pub struct HostNote(Arc<dyn HostValue>);

impl HostNote {
    /// A note of a value.
    pub fn new(value: impl HostValue) -> Self {
        Self(Arc::new(value))
    }

    /// The value, if it is of this type.
    pub fn get<T: HostValue>(&self) -> Option<&T> {
        (&*self.0 as &dyn Any).downcast_ref()
    }

    /// See [`HostValue::identity`].
    pub fn identity(&self) -> usize {
        self.0.identity()
    }
}

impl fmt::Debug for HostNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostNote({:#x})", self.identity())
    }
}

/// A value in [`Notes`]. Floats compare by their bits, so that a note equals itself.
///
/// ```
/// use nxla_expr::Note;
///
/// let sizes = Note::from([Note::from(3), Note::from(2.5), Note::from("wide")]);
/// assert!(matches!(&sizes, Note::List(items) if items.len() == 3));
/// ```
#[derive(Clone, Debug)]
pub enum Note {
    /// No value.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A string.
    Text(Arc<str>),
    /// A list of notes.
    List(Vec<Note>),
    /// Notes by name.
    Map(Notes),
    /// A value that stays in this process: [`serialize::host_note`](crate::serialize::host_note)
    /// finds it, and bytes that hold one are refused by readers.
    Host(HostNote),
}

impl Note {
    /// Returns whether the note is or holds a value that stays in this process.
    pub(crate) fn holds_host_value(&self) -> bool {
        let mut waiting = vec![self];
        while let Some(note) = waiting.pop() {
            match note {
                Note::Host(_) => return true,
                Note::List(items) => waiting.extend(items),
                Note::Map(notes) => waiting.extend(notes.iter().map(|(_, item)| item)),
                Note::Null | Note::Bool(_) | Note::Int(_) | Note::Float(_) | Note::Text(_) => {}
            }
        }
        false
    }

    /// Returns the nesting depth of lists and maps: 0 for a scalar.
    fn depth(&self) -> usize {
        // Iterative, because the depth of this note may not have been checked yet.
        let mut deepest = 0;
        let mut waiting = vec![(self, 0)];
        while let Some((note, depth)) = waiting.pop() {
            deepest = deepest.max(depth);
            match note {
                Note::List(items) => waiting.extend(items.iter().map(|item| (item, depth + 1))),
                Note::Map(notes) => {
                    waiting.extend(notes.iter().map(|(_, item)| (item, depth + 1)));
                }
                Note::Null
                | Note::Bool(_)
                | Note::Int(_)
                | Note::Float(_)
                | Note::Text(_)
                | Note::Host(_) => {}
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
            (Note::Host(a), Note::Host(b)) => a.identity() == b.identity(),
            (
                Note::Null
                | Note::Bool(_)
                | Note::Int(_)
                | Note::Float(_)
                | Note::Text(_)
                | Note::List(_)
                | Note::Map(_)
                | Note::Host(_),
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
            Note::Host(note) => note.identity().hash(state),
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
    HostNote => |value| Note::Host(value);
}

impl<const N: usize> From<[Note; N]> for Note {
    fn from(items: [Note; N]) -> Note {
        Note::List(items.into())
    }
}

/// Notes on a value by name, in the order of the names.
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
    /// Returns `true` if there are no notes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of notes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the note with a name.
    pub fn get(&self, name: &str) -> Option<&Note> {
        self.0.get(name)
    }

    /// Inserts a note and returns the previous note with the name.
    pub fn insert(&mut self, name: impl Into<Arc<str>>, note: impl Into<Note>) -> Option<Note> {
        self.0.insert(name.into(), note.into())
    }

    /// Returns the notes in the order of their names.
    pub fn iter(&self) -> btree_map::Iter<'_, Arc<str>, Note> {
        self.0.iter()
    }

    /// Returns the nesting depth of lists and maps: 0 if all notes are scalars.
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
