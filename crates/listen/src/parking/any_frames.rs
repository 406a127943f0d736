//! Frames made at random, in pieces cut at random: nothing panics, pieces make no difference, and a connection that was
//! never parked hears and says exactly what was sent.

use super::frames::{self, HEAD, Head};
use super::held::{Answer, Streams};
use super::parked::Parked;
use super::tap::Tap;
use proptest::prelude::*;

/// What a new state may be told: kinds and flags that the standard has and some that it has not.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let stream = prop_oneof![Just(0u32), 1u32..12, Just(0x7fff_ffff)];
    let payload = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        // Settings and windows that count.
        (0u16..9, prop_oneof![Just(0u32), Just(65_535), Just(i32::MAX as u32), any::<u32>()])
            .prop_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat()),
        any::<u32>().prop_map(|more| more.to_be_bytes().to_vec()),
    ];
    (0u8..12, any::<u8>(), stream, payload)
        .prop_map(|(kind, flags, stream, payload)| frames::frame(kind, flags, stream, &payload))
}

fn any_frames() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any_frame(), 0..20).prop_map(|frames| frames.concat())
}

/// Feeds it in pieces of these lengths, and returns what is forwarded to hyper.
fn inbound(tap: &mut Tap, bytes: &[u8], pieces: &[usize]) -> Vec<u8> {
    let mut forwarded = Vec::new();
    let mut rest = bytes;
    let mut lengths = pieces.iter().cycle();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at((*lengths.next().unwrap_or(&HEAD)).min(rest.len()));
        rest = after;
        forwarded.extend(tap.receive(piece));
    }
    forwarded
}

/// A connection with an ended first request that is ready to be parked: its frames were those of any client.
fn parked(settings: Vec<(u16, u32)>, window: u32) -> Option<Parked> {
    let mut tap = Tap::new(None);
    let get = [0x82, 0x87, 0x84, 0x01, 0x01, b'x'];
    let mut words = frames::PREFACE.to_vec();
    words.extend(frames::settings(settings));
    words.extend(frames::settings_ack());
    if window > 0 {
        words.extend(frames::window_update(0, window));
    }
    words.extend(frames::frame(frames::HEADERS, frames::END_STREAM | frames::END_HEADERS, 1, &get));
    tap.receive(&words);
    tap.send(&frames::frame(frames::HEADERS, frames::END_STREAM | frames::END_HEADERS, 1, &[0x88]));
    tap.begin_parking();
    tap.receive(&frames::settings_ack());
    tap.park(&Streams::default())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_active_connection_is_forwarded_as_it_is(
        frames in any_frames(),
        said in any_frames(),
        pieces in prop::collection::vec(1usize..40, 1..8),
    ) {
        let mut tap = Tap::new(None);
        let bytes = [frames::PREFACE, &frames].concat();
        prop_assert_eq!(inbound(&mut tap, &bytes, &pieces), bytes);
        let sent: Vec<u8> = said.chunks(pieces[0]).flat_map(|piece| tap.send(piece)).collect();
        prop_assert_eq!(sent, said);
        prop_assert!(tap.own().is_empty());
    }

    #[test]
    fn a_resumed_connection_takes_any_frames(
        window in prop_oneof![Just(0u32), 1u32..100_000, Just(0x7fff_0000)],
        initial in prop_oneof![Just(0u32), Just(65_535), 1u32..0x7fff_ffff],
        frames in any_frames(),
        said in any_frames(),
        pieces in prop::collection::vec(1usize..40, 1..8),
    ) {
        let Some(parked) = parked(vec![(frames::INITIAL_WINDOW_SIZE, initial)], window) else {
            return Err(TestCaseError::fail("an idle connection is parked"));
        };
        let resume = || Tap::resume(None, &parked, 1 << 20);
        let (mut whole, mut cut) = (resume(), resume());
        let (at_once, bit_by_bit) = (inbound(&mut whole, &frames, &[usize::MAX]), inbound(&mut cut, &frames, &pieces));
        // Of a header block that is refused, hyper may have got the beginning.
        let is_refused = whole.is_refused();
        prop_assert!(at_once == bit_by_bit || (is_refused && bit_by_bit.starts_with(&at_once)));
        prop_assert_eq!(is_refused, cut.is_refused());
        prop_assert_eq!(whole.own(), cut.own());
        let mut sent: Vec<u8> = said.chunks(pieces[0]).flat_map(|piece| cut.send(piece)).collect();
        sent.extend(cut.send(&[]));
        prop_assert_eq!(whole.send(&said), sent);
        prop_assert_eq!(whole.own(), cut.own());
        let answers: Vec<Option<Answer>> = parked.into_answers().into_iter().map(|a| a.answer).collect();
        prop_assert!(answers.iter().all(Option::is_none));
    }
}

#[test]
fn heads_are_read_as_they_are_written() {
    let bytes = frames::frame(frames::DATA, frames::END_STREAM, 7, b"abc");
    let head = Head::read(*bytes.first_chunk::<HEAD>().expect("a head"));
    assert_eq!((head.length, head.kind, head.flags, head.stream), (3, frames::DATA, frames::END_STREAM, 7));
}
