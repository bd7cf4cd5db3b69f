//! Encodes compound values: text and lists after their length, optional values after a presence
//! byte, tuples one element after the other.

use std::sync::Arc;

use super::wire::{Input, Problem, Wire};

/// Encodes text as its length and its bytes.
macro_rules! text {
    ($($kind:ty),*) => {$(
        impl Wire for $kind {
            fn put(&self, out: &mut Vec<u8>) {
                self.len().put(out);
                out.extend_from_slice(self.as_bytes());
            }

            fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
                Ok(input.text()?.into())
            }
        }
    )*};
}

text!(Arc<str>, String);

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
        if bool::get(input)? { T::get(input).map(Some) } else { Ok(None) }
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        for value in self {
            value.put(out);
        }
    }

    fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
        let len = usize::get(input)?;
        // Every element takes at least one byte, so a length beyond the rest of the input is
        // refused before memory is allocated.
        if len > input.left() {
            return Err(Problem::Short);
        }
        (0..len).map(|_| T::get(input)).collect()
    }
}

impl<T: Wire> Wire for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        T::put(self, out);
    }

    fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
        T::get(input).map(Self::new)
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
        Ok((A::get(input)?, B::get(input)?))
    }
}

impl<A: Wire, B: Wire, C: Wire> Wire for (A, B, C) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
        self.2.put(out);
    }

    fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
        Ok((A::get(input)?, B::get(input)?, C::get(input)?))
    }
}

impl<const N: usize> Wire for [u64; N] {
    fn put(&self, out: &mut Vec<u8>) {
        for value in self {
            value.put(out);
        }
    }

    fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
        let mut values = [0; N];
        for value in &mut values {
            *value = u64::get(input)?;
        }
        Ok(values)
    }
}
