//! Messages of protocol buffers as trees of fields.

/// The key of a field, which contains the number of the field and the kind of its value, and the value.
pub(crate) type Field = (u64, Value);

/// The value of a field.
#[derive(Clone)]
pub(crate) enum Value {
    Int(u64),
    Fixed(Vec<u8>),
    Bytes(Vec<u8>),
    Message(Vec<Field>),
}

/// Returns the bytes of an integer of variable length.
pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap());
    bytes
}

/// Removes an integer of variable length from the start of a message.
fn take_varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Removes bytes from the start of a message.
fn take_bytes(message: &mut &[u8], length: u64) -> Option<Vec<u8>> {
    let (bytes, rest) = message.split_at_checked(usize::try_from(length).ok()?)?;
    *message = rest;
    Some(bytes.to_vec())
}

/// Returns the fields of a message. Bytes that can be read as a message are a nested message, in at most
/// `depth` levels.
pub(crate) fn parse(mut message: &[u8], depth: usize) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = take_varint(&mut message)?;
        let value = match key & 7 {
            0 => Value::Int(take_varint(&mut message)?),
            1 => Value::Fixed(take_bytes(&mut message, 8)?),
            5 => Value::Fixed(take_bytes(&mut message, 4)?),
            2 => {
                let length = take_varint(&mut message)?;
                let bytes = take_bytes(&mut message, length)?;
                let nested = if depth > 0 && length > 1 { parse(&bytes, depth - 1) } else { None };
                nested.map_or(Value::Bytes(bytes), Value::Message)
            }
            _ => return None,
        };
        // The messages of ONNX have no other numbers.
        if !(1..=60).contains(&(key >> 3)) {
            return None;
        }
        fields.push((key, value));
    }
    Some(fields)
}

/// Returns the message with these fields.
pub(crate) fn write(fields: &[Field]) -> Vec<u8> {
    let mut message = Vec::new();
    for (key, value) in fields {
        message.extend(varint(*key));
        let content = match value {
            Value::Int(value) => varint(*value),
            Value::Fixed(bytes) => bytes.clone(),
            Value::Bytes(bytes) => [varint(bytes.len() as u64), bytes.clone()].concat(),
            Value::Message(fields) => {
                let nested = write(fields);
                [varint(nested.len() as u64), nested].concat()
            }
        };
        message.extend(content);
    }
    message
}

/// Returns the contents of all fields with a number, in a message whose fields have lengths.
pub(crate) fn contents(message: &[u8], number: u64) -> Vec<Vec<u8>> {
    let fields = parse(message, 0).unwrap().into_iter();
    let contents = fields.filter_map(|(key, value)| match value {
        Value::Bytes(bytes) if key >> 3 == number => Some(bytes),
        _ => None,
    });
    contents.collect()
}
