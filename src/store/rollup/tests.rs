use proptest::prelude::*;

use super::hour::Hour;
use super::*;

fn sum(values: &[f64]) -> Sum {
    let mut sum = Sum::default();
    for value in values {
        sum.add(*value);
    }
    sum
}

fn key(metric: u32, subject: u32) -> Key {
    Key { metric, subject }
}

#[test]
fn two_accounts_of_a_minute_become_one() {
    let known = vec![(key(1, 1), sum(&[1.0, 3.0])), (key(2, 1), sum(&[5.0]))];
    let more = vec![(key(1, 1), sum(&[8.0])), (key(1, 2), sum(&[-1.0]))];
    let joined = minute::join(known, more);
    let keys: Vec<_> = joined.iter().map(|(key, _)| (key.metric, key.subject)).collect();
    assert_eq!(keys, [(1, 1), (1, 2), (2, 1)]);
    assert_eq!(joined[0].1.figures(), Some([1.0, 4.0, 8.0]));
    assert_eq!(Sum::default().figures(), None);
}

#[test]
fn an_hour_that_was_turned_before_takes_in_what_comes_later() {
    let mut later = Hour::default();
    later.put(1, 5, &sum(&[4.0]));
    later.put(1, 6, &sum(&[1.0]));
    let mut before = Hour::default();
    before.put(1, 5, &sum(&[2.0]));
    before.put(2, 59, &sum(&[7.0]));
    later.join(before);
    assert_eq!(later.0[&1][5], Some([2.0, 3.0, 4.0]));
    assert_eq!(later.0[&1][6], Some([1.0, 1.0, 1.0]));
    assert_eq!((later.0[&1][7], later.0[&2][59]), (None, Some([7.0; 3])));
}

proptest! {
    #[test]
    fn minutes_come_back(
        sums in prop::collection::btree_map(
            (0..4_u32, 0..9_u32),
            prop::collection::vec(-1e12..1e12_f64, 1..4),
            0..30,
        )
    ) {
        let sums: Vec<_> =
            sums.iter().map(|((metric, subject), values)| (key(*metric, *subject), sum(values))).collect();
        prop_assert_eq!(minute::unpack(&minute::pack(&sums).unwrap()).unwrap(), sums);
    }

    #[test]
    fn hours_come_back(
        told in prop::collection::vec((0..5_u32, 0..60_usize, -1e30..1e30_f64), 0..80)
    ) {
        let mut hour = Hour::default();
        for (subject, minute, value) in told {
            hour.put(subject, minute, &sum(&[value]));
        }
        prop_assert_eq!(hour::unpack(&hour::pack(&hour).unwrap()).unwrap(), hour);
    }

    #[test]
    fn any_bytes_are_roll_ups_or_an_error(bytes in any::<Vec<u8>>()) {
        let packed = zstd::bulk::compress(&bytes, 1).unwrap();
        for bytes in [&bytes, &packed] {
            let _ = minute::unpack(bytes);
            let _ = hour::unpack(bytes);
        }
    }
}
