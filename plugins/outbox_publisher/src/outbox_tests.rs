use proptest::prelude::*;

use super::*;

const EMPTY: &[u8] = b"";

fn leased(outbox: &mut Outbox, now_ms: u64, tip: u64) -> Lease {
    outbox.hand_out(now_ms, tip).expect("a lease")
}

#[test]
fn the_cursor_moves_over_what_was_sent_and_stops_at_the_tip() {
    let mut outbox = Outbox::read(EMPTY, 0);
    let lease = leased(&mut outbox, 100, 7);
    let expected = Lease { id: 1, after: 0, upto: None, limit: LIMIT, attempt: 1, until_ms: 100 + LEASE_MS };
    assert_eq!(lease, expected);
    assert_eq!(outbox.hand_out(100, 7), None, "one range is out at a time");
    assert_eq!(outbox.wake_at(), Some(100 + LEASE_MS));
    outbox.extent(1, 7);
    outbox.result(1, None, 200);
    assert_eq!((outbox.published(), outbox.wake_at(), outbox.hand_out(200, 7)), (7, None, None));
    assert_eq!(leased(&mut outbox, 300, 8).after, 7);
}

#[test]
fn a_failed_range_rests_longer_each_time_and_goes_to_the_same_end() {
    let mut outbox = Outbox::read(EMPTY, 0);
    let mut now_ms = 0;
    let mut rests = Vec::new();
    for attempt in 1..=11 {
        let lease = leased(&mut outbox, now_ms, 50);
        assert_eq!((lease.attempt, lease.upto), (attempt, (attempt > 1).then_some(9)));
        outbox.extent(lease.id, if attempt == 1 { 9 } else { 30 });
        outbox.result(lease.id, Some("stream is down".to_owned()), now_ms);
        let due = outbox.wake_at().expect("a time to wake at");
        assert_eq!(outbox.hand_out(due - 1, 50), None);
        rests.push((due - now_ms) / 1_000);
        now_ms = due;
    }
    assert_eq!(rests, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    assert_eq!(outbox.published(), 0);
    let lease = leased(&mut outbox, now_ms, 50);
    outbox.result(lease.id, None, now_ms);
    assert_eq!(outbox.published(), 9);
}

#[test]
fn a_lease_that_is_never_answered_is_taken_back() {
    let mut outbox = Outbox::read(EMPTY, 0);
    let lost = leased(&mut outbox, 0, 3);
    outbox.extent(lost.id, 3);
    let again = leased(&mut outbox, LEASE_MS, 3);
    assert_eq!((again.id, again.upto, again.attempt), (2, Some(3), 2));
    outbox.result(lost.id, None, LEASE_MS);
    assert_eq!(outbox.published(), 0, "an answer for a lease that was taken back is too late");
    outbox.result(again.id, None, LEASE_MS);
    assert_eq!(outbox.published(), 3);
}

#[test]
fn what_was_sent_without_an_end_is_sent_again() {
    let mut outbox = Outbox::read(EMPTY, 0);
    let lease = leased(&mut outbox, 0, 3);
    outbox.extent(lease.id, 0);
    outbox.result(lease.id, None, 0);
    assert_eq!((outbox.published(), outbox.wake_at()), (0, Some(FIRST_REST_MS)));
}

#[test]
fn a_clock_that_goes_back_does_not_hold_anything_up() {
    let mut outbox = Outbox::read(EMPTY, 0);
    leased(&mut outbox, 1_000_000_000, 3);
    let outbox = Outbox::read(&outbox.write(), 500);
    assert_eq!(outbox.wake_at(), Some(500 + LEASE_MS));
}

#[test]
fn a_state_that_cannot_be_read_is_as_none() {
    for state in [&b"nonsense"[..], br#"{"form":9,"cursor":5,"last_lease":1,"range":null}"#] {
        assert_eq!(Outbox::read(state, 0), Outbox::read(EMPTY, 0));
    }
    let mut outbox = Outbox::read(EMPTY, 0);
    leased(&mut outbox, 0, 3);
    assert_eq!(Outbox::read(&outbox.write(), 0), outbox);
    assert!(String::from_utf8(outbox.write()).expect("text").contains("IN_FLIGHT"));
}

/// What happens to a lease in a step of a simulated kernel.
#[derive(Debug, Clone)]
enum Fate {
    Sent,
    /// Sent up to somewhere, then an error.
    Torn(u64),
    /// The kernel dies, before or after it said how far the lease goes.
    Lost {
        told: bool,
        sent: bool,
    },
    /// Answered after it was taken back.
    Late,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => Just(Fate::Sent),
        2 => (0u64..5).prop_map(Fate::Torn),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(told, sent)| Fate::Lost { told, sent }),
        1 => Just(Fate::Late),
    ]
}

/// A log, a receiver and a clock.
#[derive(Default)]
struct World {
    state: Vec<u8>,
    now_ms: u64,
    tip: u64,
    received: Vec<u64>,
    late: Vec<u64>,
}

impl World {
    /// One tick with what came back since the last one, and the new lease with its end in the log.
    fn tick(&mut self, extents: &[(u64, u64)], results: &[(u64, Option<String>)]) -> (Option<(Lease, u64)>, Outbox) {
        let mut outbox = Outbox::read(&self.state, self.now_ms);
        let before = outbox.published();
        extents.iter().for_each(|(lease, upto)| outbox.extent(*lease, *upto));
        results.iter().for_each(|(lease, error)| outbox.result(*lease, error.clone(), self.now_ms));
        let lease = outbox.hand_out(self.now_ms, self.tip);
        self.state = outbox.write();
        assert!(outbox.published() >= before, "the cursor never goes back");
        assert!(outbox.published() == self.tip || outbox.wake_at().is_some(), "something is always going to happen");
        let placed = lease.map(|lease| {
            let end = lease.upto.unwrap_or_else(|| self.tip.min(lease.after + 3));
            (lease, end)
        });
        (placed, outbox)
    }

    fn send(&mut self, after: u64, upto: u64) {
        self.received.extend(after + 1..=upto);
    }

    /// Everything up to the cursor was received, for the first time in order.
    fn check(&self, cursor: u64) {
        let mut first = Vec::new();
        for position in &self.received {
            if !first.contains(position) {
                first.push(*position);
            }
        }
        assert!(first.windows(2).all(|pair| pair[0] + 1 == pair[1]), "first deliveries are in order: {first:?}");
        assert!((1..=cursor).all(|position| first.contains(&position)), "{cursor} is past what was received");
    }
}

proptest! {
    #[test]
    fn everything_is_published_at_least_once_and_in_order(
        steps in proptest::collection::vec((fate(), 0u64..4, 0u64..40_000), 1..60),
    ) {
        let mut world = World::default();
        let (mut extents, mut results) = (Vec::new(), Vec::new());
        for (fate, appended, passed) in steps {
            world.tip += appended;
            world.now_ms += passed;
            results.extend(std::mem::take(&mut world.late).into_iter().map(|lease| (lease, None)));
            let (lease, outbox) = world.tick(&extents, &results);
            (extents, results) = (Vec::new(), Vec::new());
            world.check(outbox.published());
            let Some((lease, end)) = lease else { continue };
            extents.push((lease.id, end));
            match fate {
                Fate::Sent => {
                    world.send(lease.after, end);
                    results.push((lease.id, None));
                }
                Fate::Torn(count) => {
                    world.send(lease.after, end.min(lease.after + count));
                    results.push((lease.id, Some("torn".to_owned())));
                }
                Fate::Lost { told, sent } => {
                    if sent {
                        world.send(lease.after, end);
                    }
                    if !told {
                        extents.clear();
                    }
                }
                Fate::Late => {
                    world.send(lease.after, end);
                    world.late.push(lease.id);
                }
            }
        }
        // Once the stream is well, everything gets through without any traffic, by the wake-ups alone.
        for _ in 0..200 {
            let (lease, outbox) = world.tick(&extents, &results);
            (extents, results) = (Vec::new(), Vec::new());
            world.check(outbox.published());
            match (lease, outbox.wake_at()) {
                (Some((lease, end)), _) => {
                    world.send(lease.after, end);
                    extents.push((lease.id, end));
                    results.push((lease.id, None));
                }
                (None, Some(wake_at)) => world.now_ms = world.now_ms.max(wake_at),
                (None, None) => break,
            }
        }
        prop_assert_eq!(Outbox::read(&world.state, world.now_ms).published(), world.tip);
    }
}
