use probes::proc::Process;
use probes::snapshot::{Gpu, Health, Snapshot};
use proptest::prelude::*;

use super::msgpack::{Token, put};
use super::*;

fn packed(frames: &[Vec<u8>]) -> Vec<u8> {
    pack(frames.len(), |index| Ok(frames[index].clone())).unwrap()
}

fn unpacked(chunk: &[u8], frames: usize) -> Vec<Vec<u8>> {
    let mut chunk = Chunk::open(chunk.to_vec(), &[]).unwrap();
    (0..frames).map(|index| chunk.frame(index).unwrap()).collect()
}

/// Snapshots of a box on which everything moves: processes come, go and change places, a reading is
/// lost and comes back, a text changes, a number falls below zero.
fn busy(length: u64) -> Vec<Vec<u8>> {
    let frame = |at: u64| {
        let mut gpus: Vec<Gpu> = (0..3)
            .map(|index| Gpu { index, health: Health::Answering, ..Gpu::default() })
            .collect();
        gpus[0].power.draw_watts = (300.0 + (at % 7) as f64 / 1000.0).into();
        gpus[1].gpm.sm_active_ratio = (1.0 / (at + 3) as f64).into();
        gpus[2].temperature.margin_celsius = (2 - i32::try_from(at % 5).unwrap()).into();
        if at % 11 == 3 {
            gpus[1].health = Health::Lost { since_ms: at, answer: "gone".into() };
        }
        let mut processes: Vec<Process> = (0..6_u64)
            .filter(|number| !(number + at).is_multiple_of(5))
            .map(|number| Process {
                pid: u32::try_from(100 + number + at / 9).unwrap(),
                state: if at.is_multiple_of(3) { "R" } else { "S" }.to_string().into(),
                rss_bytes: (4096 * (number * at)).into(),
                ..Process::default()
            })
            .collect();
        processes.sort_by_key(|process| (u64::from(process.pid) * (at + 1)) % 17);
        let taken_at_ms = 1_796_127_900_000 + 1000 * at;
        Snapshot { sequence: at, taken_at_ms, gpus, processes, ..Snapshot::default() }
            .encode()
            .unwrap()
    };
    (0..length).map(frame).collect()
}

#[test]
fn snapshots_come_back_to_the_byte_and_take_a_fraction() {
    let frames = busy(60);
    let chunk = packed(&frames);
    assert_eq!(chunk[0], COLUMNS);
    assert_eq!(unpacked(&chunk, 60), frames);
    let plain: usize = frames.iter().map(Vec::len).sum();
    assert!(chunk.len() * 30 < plain, "{} of {plain}", chunk.len());
}

#[test]
fn any_snapshot_of_a_chunk_is_found_in_any_order() {
    let frames = busy(20);
    let mut chunk = Chunk::open(packed(&frames), &[]).unwrap();
    for index in [19, 0, 7, 7, 6, 8, 19, 1] {
        assert_eq!(chunk.frame(index).unwrap(), frames[index]);
    }
    assert!(chunk.frame(20).is_err());
    assert_eq!(chunk.frame(3).unwrap(), frames[3]);
}

#[test]
fn what_is_hidden_is_left_out_and_the_rest_stays_what_it_was() {
    let frames = busy(12);
    let mut chunk = Chunk::open(packed(&frames), &[(1, "processes"), (3, "power")]).unwrap();
    for (index, frame) in frames.iter().enumerate() {
        let part = Snapshot::decode(&chunk.frame(index).unwrap()).unwrap();
        let mut whole = Snapshot::decode(frame).unwrap();
        whole.processes.clear();
        for gpu in &mut whole.gpus {
            gpu.power = probes::nvml::power::Power::default();
        }
        assert_eq!(part, whole);
    }
}

#[test]
fn what_is_not_in_its_shortest_form_is_packed_plainly() {
    // 5 as a number of four bytes.
    let frames = [vec![0x81, 0xa1, b'a', 0xce, 0, 0, 0, 5], vec![0xc1], Vec::new()];
    let chunk = packed(&frames);
    assert_eq!(chunk[0], PLAIN);
    assert_eq!(unpacked(&chunk, 3), frames);
}

#[test]
fn a_chunk_that_was_cut_or_has_a_flipped_bit_is_an_error_and_no_other_snapshot() {
    let frames = busy(5);
    let chunk = packed(&frames);
    for at in 0..chunk.len() {
        let mut cut = chunk[..at].to_vec();
        assert!(read_all(&cut, 5).is_err(), "cut at {at}");
        cut = chunk.clone();
        cut[at] ^= 0x10;
        if let Ok(read) = read_all(&cut, 5) {
            assert_eq!(read, frames, "flipped at {at}");
        }
    }
}

#[test]
fn seeds_of_chunks_are_kept_where_they_are_asked_for() {
    if std::env::var_os("KEEP_SEEDS").is_some() {
        fuzzing::keep_seeds(&busy(7)).unwrap();
    }
}

fn read_all(chunk: &[u8], frames: usize) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut chunk = Chunk::open(chunk.to_vec(), &[])?;
    (0..frames).map(|index| chunk.frame(index)).collect()
}

/// A tree of pieces, as bytes.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![0..4_u64, any::<u64>(), (0..64_u32).prop_map(|bits| 1 << bits)];
    let scalar = prop_oneof![
        Just(one(Token::Nil)),
        any::<bool>().prop_map(|value| one(Token::Bool(value))),
        number.prop_map(|value| one(Token::Unsigned(value))),
        prop_oneof![-300..0_i64, i64::MIN..0].prop_map(|value| one(Token::Negative(value))),
        any::<u32>().prop_map(|bits| one(Token::Float32(bits))),
        any::<u64>().prop_map(|bits| one(Token::Float64(bits))),
        (-9999..9999_i32).prop_map(|n| one(Token::Float64((f64::from(n) / 100.0).to_bits()))),
        "[a-c]{0,2}".prop_map(|text| one(Token::Text(text.as_bytes()))),
        "x{30,300}".prop_map(|text| one(Token::Text(text.as_bytes()))),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| one(Token::Binary(&bytes))),
        prop::collection::vec(any::<u8>(), 1..40).prop_map(|bytes| one(Token::Extension(&bytes))),
    ];
    scalar.prop_recursive(4, 60, 8, |inner| {
        let entry = ("[a-d]", inner.clone());
        let map = prop::collection::btree_map(entry.0, entry.1, 0..6).prop_map(|map| {
            let mut bytes = one(Token::Map(map.len().try_into().unwrap()));
            for (key, value) in map {
                put(&mut bytes, Token::Text(key.as_bytes()));
                bytes.extend(value);
            }
            bytes
        });
        let list = prop::collection::vec(inner, 0..20).prop_map(|list| {
            let mut bytes = one(Token::Array(list.len().try_into().unwrap()));
            bytes.extend(list.concat());
            bytes
        });
        prop_oneof![map, list]
    })
}

fn one(token: Token<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, token);
    bytes
}

proptest! {
    #[test]
    fn any_values_come_back_from_columns(
        values in prop::collection::vec(value(), 1..6),
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let frames: Vec<Vec<u8>> = order.iter().map(|at| at.get(&values).clone()).collect();
        let chunk = packed(&frames);
        prop_assert_eq!(chunk[0], COLUMNS);
        prop_assert_eq!(unpacked(&chunk, frames.len()), frames);
    }

    #[test]
    fn any_bytes_come_back(frames in prop::collection::vec(any::<Vec<u8>>(), 0..6)) {
        prop_assert_eq!(unpacked(&packed(&frames), frames.len()), frames);
    }

    #[test]
    fn any_bytes_are_a_chunk_or_an_error(bytes in any::<Vec<u8>>()) {
        for format in [PLAIN, COLUMNS] {
            let mut chunk = vec![format];
            chunk.extend_from_slice(&bytes);
            let _ = read_all(&chunk, 3);
        }
    }
}
