//! A written response is read again, and a changed one is not.

use super::*;

fn whole() -> SavedResponse {
    let header = |name: &'static str, value: &'static [u8]| {
        (HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap())
    };
    let mut trailers = HeaderMap::new();
    trailers.append("grpc-status", HeaderValue::from_static("0"));
    SavedResponse::Buffered(BufferedResponse {
        status: StatusCode::CREATED,
        headers: vec![header("link", b"a"), header("x-odd", b"\xfe"), header("link", b"b")],
        body: Bytes::from_static(b"\x1f\x8b binary"),
        trailers: Some(trailers),
    })
}

const BOUND: ResponseBinding<'static> = ResponseBinding { name: "acme POST /x k", fingerprint: &[7; 32] };

fn seal(first: u8) -> SealingKeys {
    SealingKeys::new(&[[first; 32]]).unwrap()
}

#[test]
fn what_is_written_is_read_again() {
    let empty = SavedResponse::Buffered(BufferedResponse {
        status: StatusCode::NO_CONTENT,
        headers: Vec::new(),
        body: Bytes::new(),
        trailers: None,
    });
    for kept in [whole(), empty, SavedResponse::TooLarge(StatusCode::OK)] {
        for seal in [None, Some(seal(1))] {
            let bytes = encode(&kept, &BOUND, seal.as_ref()).unwrap();
            assert_eq!(decode(bytes, &BOUND, seal.as_ref()), Ok(kept.clone()));
        }
    }
}

/// IDM-19: no bit of a stored response can change, and no response can move to another key, without
/// detection.
#[test]
fn a_changed_answer_is_not_served() {
    for seal in [None, Some(seal(1))] {
        let bytes = encode(&whole(), &BOUND, seal.as_ref()).unwrap();
        for index in 0..bytes.len() {
            for flip in [1, 0x80] {
                let mut changed = bytes.to_vec();
                changed[index] ^= flip;
                assert!(decode(changed.into(), &BOUND, seal.as_ref()).is_err(), "byte {index} ^ {flip}");
            }
            assert!(decode(bytes.slice(..index), &BOUND, seal.as_ref()).is_err(), "cut at {index}");
        }
        let other = ResponseBinding { name: "evil POST /x k", ..BOUND };
        assert_eq!(decode(bytes.clone(), &other, seal.as_ref()), Err(ResponseDecodeError::Changed));
        let other = ResponseBinding { fingerprint: &[8; 32], ..BOUND };
        assert_eq!(decode(bytes, &other, seal.as_ref()), Err(ResponseDecodeError::Changed));
    }
}

#[test]
fn a_sealed_answer_needs_its_key_and_hides_its_body() {
    let bytes = encode(&whole(), &BOUND, Some(&seal(1))).unwrap();
    assert!(!bytes.windows(6).any(|window| window == b"binary"));
    assert_eq!(decode(bytes.clone(), &BOUND, None), Err(ResponseDecodeError::NoKey));
    assert_eq!(decode(bytes.clone(), &BOUND, Some(&seal(2))), Err(ResponseDecodeError::NoKey));
    let both = SealingKeys::new(&[[2; 32], [1; 32]]).unwrap();
    assert_eq!(decode(bytes, &BOUND, Some(&both)), Ok(whole()), "an earlier key still opens");
}

/// A response that was stored before sealing was switched on is still served.
#[test]
fn a_plain_answer_is_read_with_a_seal_too() {
    let bytes = encode(&whole(), &BOUND, None).unwrap();
    assert_eq!(decode(bytes, &BOUND, Some(&seal(1))), Ok(whole()));
}

/// A response of a newer version is not guessed at.
#[test]
fn a_newer_form_is_refused() {
    assert_eq!(decode(Bytes::from_static(&[3, 1, 2, 3]), &BOUND, None), Err(ResponseDecodeError::Unknown));
    assert_eq!(decode(Bytes::new(), &BOUND, None), Err(ResponseDecodeError::Changed));
}

/// The format is fixed: a stored response outlives the program that stored it.
#[test]
fn the_form_is_what_it_always_was() {
    let bytes = encode(&SavedResponse::TooLarge(StatusCode::OK), &BOUND, None).unwrap();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "0123097454024da0e5d9207b760d9ead820100c8");
}
