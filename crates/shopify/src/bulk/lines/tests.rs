//! Lines from chunks, however they are split.

use proptest::prelude::*;

use super::*;

/// Returns all lines of these chunks.
fn lines(pieces: &[&[u8]], line_max: usize) -> Result<Vec<String>> {
    let mut split = LineSplitter::new(line_max);
    let mut pieces = pieces.iter();
    let mut lines = Vec::new();
    loop {
        while let Some(line) = split.next_line()? {
            lines.push(String::from_utf8(line.to_vec()).unwrap());
        }
        if split.is_over {
            return Ok(lines);
        }
        split.feed(pieces.next().map(|piece| Bytes::copy_from_slice(piece)));
    }
}

#[test]
fn empty_lines_and_a_missing_end_are_no_trouble() {
    assert_eq!(lines(&[b"a\n\n", b"", b"\nb\r\nc"], 9).unwrap(), ["a", "b", "c"]);
    assert_eq!(lines(&[], 9).unwrap(), Vec::<String>::new());
    assert_eq!(lines(&[b"\n"], 9).unwrap(), Vec::<String>::new());
}

#[test]
fn a_line_that_is_too_long_is_an_error_and_no_larger_buffer() {
    for pieces in [&[&b"ok\n0123456789\n"[..]][..], &[b"ok\n01234", b"56789"], &[b"ok\n", b"0123456789"]] {
        let error = lines(pieces, 9).unwrap_err();
        let said = "The response cannot be read: line 2 of the result is longer than the limit of 9 bytes.";
        assert_eq!(error.to_string(), said);
    }
    assert_eq!(lines(&[b"01234", b"5678\n"], 9).unwrap(), ["012345678"]);
}

/// LIM-17: a million lines are read in constant memory: a line and a chunk at a time.
#[test]
fn lim_17_a_million_lines_are_read_in_constant_memory() {
    const PIECE: usize = 8 * 1024;
    let row = br#"{"id":"gid:\/\/shopify\/Product\/1234567890","title":"A title","__parentId":null}"#;
    let mut split = LineSplitter::new(1024);
    let (mut made, mut read, mut bytes, mut held_most) = (0_u64, 0_u64, 0_usize, 0);
    let mut carry: Vec<u8> = Vec::new();
    loop {
        while let Some(line) = split.next_line().unwrap() {
            read += 1;
            bytes += line.len();
        }
        if split.is_over {
            break;
        }
        while carry.len() < PIECE && made < 1_000_000 {
            carry.extend_from_slice(row);
            carry.push(b'\n');
            made += 1;
        }
        let rest = carry.split_off(carry.len().min(PIECE));
        let piece = std::mem::replace(&mut carry, rest);
        split.feed((!piece.is_empty()).then(|| Bytes::from(piece)));
        held_most = held_most.max(split.begun.len() + split.piece.len());
    }
    assert_eq!((read, bytes), (1_000_000, row.len() * 1_000_000));
    assert!(held_most <= PIECE + row.len(), "{held_most}");
}

proptest! {
    /// However a result is split into chunks, its lines are the same.
    #[test]
    fn lines_do_not_depend_on_the_pieces(text in "[ab\n]{0,60}", cuts in proptest::collection::vec(0_usize..60, 0..8)) {
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|cut| &text.as_bytes()[cut[0]..cut[1]]).collect();
        let expected: Vec<_> = text.split('\n').filter(|line| !line.is_empty()).map(str::to_owned).collect();
        prop_assert_eq!(lines(&pieces, 60).unwrap(), expected);
    }
}
