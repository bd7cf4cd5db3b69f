//! Encodes numbers: base 128, seven bits per byte, lowest first, the high bit set when more bytes
//! follow. `u8` and `bool` are one byte, `u128` is sixteen, lowest first. A time is encoded as its
//! microseconds.

use std::time::Duration;

use tidegate_core::{Fence, Seq, Time, Turn};

use super::wire::{Input, Problem, Wire};

impl Wire for u8 {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
        input.take(1)?.first().copied().ok_or(Problem::Short)
    }
}

impl Wire for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        let mut left = *self;
        while left >= 0x80 {
            out.push(left as u8 | 0x80);
            left >>= 7;
        }
        out.push(left as u8);
    }

    fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = u8::get(input)?;
            let bits = Self::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Problem::Large);
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Problem::Large)
    }
}

impl Wire for u128 {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
        let bytes = input.take(16)?.try_into().map_err(|_| Problem::Short)?;
        Ok(Self::from_le_bytes(bytes))
    }
}

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
        match u8::get(input)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Problem::Tag),
        }
    }
}

/// Encodes narrower numbers as `u64` and checks them on reading.
macro_rules! narrow {
    ($($number:ty),*) => {$(
        impl Wire for $number {
            fn put(&self, out: &mut Vec<u8>) {
                u64::from(*self).put(out);
            }

            fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
                Self::try_from(u64::get(input)?).map_err(|_| Problem::Large)
            }
        }
    )*};
}

narrow!(u16, u32);

impl Wire for usize {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u64).put(out);
    }

    fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
        Self::try_from(u64::get(input)?).map_err(|_| Problem::Large)
    }
}

/// Encodes a newtype as its number.
macro_rules! number {
    ($($name:ident),*) => {$(
        impl Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }

            fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
                Ok(Self(u64::get(input)?))
            }
        }
    )*};
}

number!(Seq, Fence, Turn);

impl Wire for Time {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_micros().put(out);
    }

    fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
        Ok(Self::from_micros(u64::get(input)?))
    }
}

impl Wire for Duration {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_secs().put(out);
        self.subsec_nanos().put(out);
    }

    fn get(input: &mut Input<'_>) -> Result<Self, Problem> {
        let (secs, nanos) = (u64::get(input)?, u32::get(input)?);
        if nanos >= 1_000_000_000 {
            return Err(Problem::Large);
        }
        Ok(Self::new(secs, nanos))
    }
}
