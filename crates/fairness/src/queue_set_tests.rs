use super::*;
use crate::SECOND;
use crate::dealer::Dealer;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};

const MS: Nanos = SECOND / 1000;

type Set = QueueSet<&'static str, u32>;

fn queuing(queues: u32, hand_size: u32, length_limit: u32) -> Discipline {
    Discipline::Queue(Queuing { queues, hand_size, length_limit, dealer: Dealer::new(queues, hand_size).unwrap() })
}

fn admitted(admission: Admission) -> Ticket {
    match admission {
        Admission::Execute(ticket) | Admission::Wait(ticket) => ticket,
        Admission::Reject(reason) => panic!("{reason:?}"),
    }
}

fn started(set: &Set, ticket: Ticket) -> Option<Nanos> {
    set.requests.get(ticket).and_then(|r| r.started)
}

#[test]
fn the_worked_example() {
    let mut set = Set::new(0, queuing(2, 1, 50), 2);
    let a: Vec<_> = (0..4).map(|_| admitted(set.arrive(0, Work::ONE, 0, "a"))).collect();
    let b = admitted(set.arrive(SECOND / 2, Work::ONE, 1, "b"));
    assert_eq!(set.meter().to_string(), "1.00000000ss");
    set.wake_with(b, 7);
    set.finish(SECOND, a[0]);
    assert_eq!(set.meter().to_string(), "1.50000000ss");
    assert_eq!(started(&set, b), Some(SECOND));
    assert_eq!(started(&set, a[2]), None);
    assert_eq!(set.take_woken(), [7]);
    set.finish(SECOND, a[1]);
    assert_eq!(started(&set, a[2]), Some(SECOND));
    assert_eq!(started(&set, a[3]), None);
    assert_eq!(set.queues()[0].next_start.to_string(), "2.00300000ss");
}

#[test]
fn without_queues_what_finds_no_seat_is_refused() {
    let mut set = Set::new(0, Discipline::Reject, 2);
    let first = admitted(set.arrive(0, Work::ONE, 0, "a"));
    assert!(matches!(set.arrive(0, Work::seats(2), 0, "b"), Admission::Reject(Reason::ConcurrencyLimit)));
    let second = admitted(set.arrive(0, Work::ONE, 0, "c"));
    assert!(matches!(set.arrive(0, Work::ONE, 0, "d"), Admission::Reject(Reason::ConcurrencyLimit)));
    set.finish(1, first);
    // An old ticket does nothing.
    set.finish(1, first);
    assert_eq!(set.totals().executing, 1);
    set.finish(1, second);
    // More than the limit, but alone.
    let wide = admitted(set.arrive(2, Work::seats(5), 0, "e"));
    assert!(matches!(set.arrive(2, Work::ONE, 0, "f"), Admission::Reject(_)));
    set.finish(3, wide);
    assert_eq!(set.totals(), Totals { dispatched: 3, rejected: 3, ..Totals::default() });
    assert!(set.is_idle());
}

#[test]
fn exempt_requests_are_counted_only() {
    let mut set = Set::new(0, Discipline::Exempt, 0);
    let all: Vec<_> = (0..1000).map(|_| admitted(set.arrive(0, Work::seats(10), 0, "a"))).collect();
    assert_eq!(set.totals().seats_in_use, 10_000);
    all.into_iter().for_each(|ticket| set.finish(1, ticket));
    assert_eq!(set.end_period(2).max, 10_000.0);
}

#[test]
fn a_full_queue_refuses_and_a_tired_request_leaves() {
    let mut set = Set::new(0, queuing(1, 1, 2), 1);
    let running = admitted(set.arrive(0, Work::ONE, 0, "a"));
    let second = admitted(set.arrive(0, Work::ONE, 0, "b"));
    let third = admitted(set.arrive(0, Work::ONE, 0, "c"));
    assert_eq!(set.arrive(0, Work::ONE, 0, "d"), Admission::Reject(Reason::QueueFull));
    assert_eq!(set.cancel(5, second), Cancelled::WhileWaiting);
    assert_eq!(set.cancel(5, running), Cancelled::Executing);
    set.finish(6, running);
    assert_eq!(started(&set, third), Some(6));
    assert_eq!(set.cancel(7, third), Cancelled::Executing);
    set.finish(8, third);
    let totals = set.totals();
    assert_eq!((totals.dispatched, totals.rejected, totals.cancelled), (2, 2, 1));
    assert!(set.is_idle() && totals.seats_in_use == 0);
}

#[test]
fn seats_are_kept_for_a_while() {
    let mut set = Set::new(0, queuing(1, 1, 10), 3);
    let work = Work { initial_seats: 1, final_seats: 3, extra: 10 * MS };
    let write = admitted(set.arrive(0, work, 0, "write"));
    let read = admitted(set.arrive(0, Work::ONE, 0, "read"));
    assert_eq!(set.next_release(), None);
    set.finish(2 * MS, write);
    assert_eq!(set.totals().executing, 0);
    assert_eq!(set.totals().seats_in_use, 3);
    assert_eq!(set.next_release(), Some(12 * MS));
    // However late one looks, the seats went when they were due.
    set.tick(20 * MS);
    assert_eq!(started(&set, read), Some(12 * MS));
    assert_eq!(set.next_release(), None);
    set.finish(30 * MS, read);
    let demand = set.end_period(40 * MS);
    assert_eq!(demand.max, 4.0);
    // 4 seats for 12 ms, then one for 18 ms.
    assert!((demand.average - (4.0 * 12.0 + 18.0) / 40.0).abs() < 1e-9, "{demand:?}");
}

#[test]
fn more_final_seats_than_there_are_take_longer() {
    let mut set = Set::new(0, queuing(1, 1, 10), 2);
    let work = Work { initial_seats: 1, final_seats: 4, extra: 10 * MS };
    let write = admitted(set.arrive(0, work, 0, "write"));
    assert_eq!(set.totals().seats_in_use, 2);
    set.finish(MS, write);
    set.tick(21 * MS - 1);
    assert_eq!(set.totals().seats_in_use, 2);
    set.tick(21 * MS);
    assert_eq!(set.totals().seats_in_use, 0);
}

#[test]
fn a_wide_request_is_not_overtaken_for_ever() {
    let mut set = Set::new(0, queuing(2, 1, 1000), 4);
    let mut narrow: Vec<_> = (0..4).map(|_| admitted(set.arrive(0, Work::ONE, 0, "narrow"))).collect();
    let wide = admitted(set.arrive(0, Work::seats(4), 1, "wide"));
    let mut now = 0;
    while started(&set, wide).is_none() {
        now += 10 * MS;
        assert!(now < SECOND, "it starves");
        for ticket in std::mem::take(&mut narrow) {
            if started(&set, ticket).is_some() {
                set.finish(now, ticket);
            } else {
                narrow.push(ticket);
            }
            narrow.push(admitted(set.arrive(now, Work::ONE, 0, "narrow")));
        }
    }
}

#[test]
fn queues_come_at_once_and_go_when_empty() {
    let mut set = Set::new(0, queuing(4, 1, 10), 1);
    let tickets: Vec<_> = (0..4).map(|hash| admitted(set.arrive(0, Work::ONE, hash, "a"))).collect();
    set.configure(1, queuing(2, 1, 10), 1, 1);
    assert_eq!(set.queues().len(), 4);
    for (i, ticket) in tickets.into_iter().enumerate() {
        set.finish(2 + i as Nanos, ticket);
    }
    assert_eq!(set.queues().len(), 2);
    set.configure(10, queuing(8, 2, 10), 1, 1);
    assert_eq!(set.queues().len(), 8);
    let ticket = admitted(set.arrive(11, Work::ONE, 77, "b"));
    let waiting = admitted(set.arrive(11, Work::ONE, 77, "b"));
    // Nobody is refused after the fact.
    set.configure(12, Discipline::Reject, 1, 1);
    set.finish(13, ticket);
    assert_eq!(started(&set, waiting), Some(13));
    set.finish(14, waiting);
    assert_eq!(set.queues().len(), 0);
}

#[test]
fn a_higher_limit_helps_at_once() {
    let mut set = Set::new(0, queuing(4, 2, 10), 1);
    let tickets: Vec<_> = (0..4).map(|i| admitted(set.arrive(0, Work::ONE, 9, ["a", "b", "c", "d"][i]))).collect();
    set.configure(5, queuing(4, 2, 10), 3, 3);
    assert_eq!(tickets.iter().filter(|t| started(&set, **t).is_some()).count(), 3);
    let places: Vec<_> =
        set.requests().map(|(queue, place, r)| (queue.is_some(), place, r.started.is_some())).collect();
    assert_eq!(places[0], (true, Some(0), false));
    assert_eq!(places.len(), 4);
}

/// Clients that ask again as soon as they are answered, or wait a little.
struct Clients {
    flow: u64,
    count: usize,
    service: Nanos,
    work: Work,
    pause: Nanos,
}

/// Runs the clients for a while and returns, by flow, how long requests took and how many were refused.
fn simulate(set: &mut QueueSet<u64, usize>, clients: &[Clients], end: Nanos) -> BTreeMap<u64, (Vec<Nanos>, usize)> {
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    enum What {
        Finish(usize),
        Arrive,
        Release,
    }
    let mut events = BinaryHeap::new();
    let mut running: HashMap<usize, (usize, Ticket, Nanos)> = HashMap::new();
    let mut results = BTreeMap::new();
    let mut next = 0;
    for (kind, clients) in clients.iter().enumerate() {
        for i in 0..clients.count {
            // Not all in one moment.
            let begin = clients.service * i as Nanos / clients.count as Nanos;
            events.push(Reverse((begin, What::Arrive, kind)));
        }
    }
    while let Some(Reverse((now, what, kind))) = events.pop() {
        if now > end {
            break;
        }
        let Clients { flow, service, work, pause, .. } = &clients[kind];
        let result: &mut (Vec<Nanos>, usize) = results.entry(*flow).or_default();
        match what {
            What::Arrive => {
                next += 1;
                match set.arrive(now, *work, *flow, *flow) {
                    Admission::Execute(ticket) => {
                        running.insert(next, (kind, ticket, now));
                        events.push(Reverse((now + service, What::Finish(next), kind)));
                    }
                    Admission::Wait(ticket) => {
                        running.insert(next, (kind, ticket, now));
                        set.wake_with(ticket, next);
                    }
                    Admission::Reject(_) => {
                        result.1 += 1;
                        // A refused client comes back after a second.
                        events.push(Reverse((now + SECOND, What::Arrive, kind)));
                    }
                }
            }
            What::Finish(id) => {
                let (_, ticket, arrived) = running.remove(&id).unwrap();
                result.0.push(now - arrived);
                set.finish(now, ticket);
                events.push(Reverse((now + pause, What::Arrive, kind)));
            }
            What::Release => set.tick(now),
        }
        for id in set.take_woken() {
            let (kind, ..) = running[&id];
            events.push(Reverse((now + clients[kind].service, What::Finish(id), kind)));
        }
        if let Some(due) = set.next_release() {
            events.push(Reverse((due, What::Release, kind)));
        }
    }
    results
}

/// As a hash of a flow's name is.
fn mixed(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

fn p99(times: &[Nanos]) -> Nanos {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

/// The promise: ten times more clients than seats in one flow, and another flow hardly notices.
#[test]
fn an_elephant_does_not_trample_a_mouse() {
    for hash in 0..12u64 {
        let clients =
            |flow, count, pause| Clients { flow: mixed(flow), count, service: 10 * MS, work: Work::ONE, pause };
        let mouse = || clients(2 * hash, 2, 7 * MS);
        let elephant = clients(2 * hash + 1, 200, 0);
        let discipline = queuing(64, 6, 50);
        let idle = simulate(&mut QueueSet::new(0, discipline, 20), &[mouse()], 3 * SECOND);
        let busy = simulate(&mut QueueSet::new(0, discipline, 20), &[mouse(), elephant], 3 * SECOND);
        let (idle, loaded) = (p99(&idle[&mouse().flow].0), p99(&busy[&mouse().flow].0));
        assert!(loaded <= 2 * idle, "flow {hash}: {loaded} against {idle}");
        assert_eq!(busy[&mouse().flow].1, 0, "none is refused");
    }
}

#[test]
fn equal_flows_get_equal_shares_whatever_their_width() {
    let flow = |flow, count, seats| Clients { flow, count, service: 10 * MS, work: Work::seats(seats), pause: 0 };
    let clients = [flow(0, 100, 1), flow(1, 10, 4)];
    let results = simulate(&mut QueueSet::new(0, queuing(2, 1, 200), 8), &clients, 5 * SECOND);
    let seats = |flow: u64, width: usize| (results[&flow].0.len() * width) as f64;
    let ratio = seats(0, 1) / seats(1, 4);
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

#[test]
fn seats_that_are_kept_do_not_stop_the_level() {
    let work = Work { initial_seats: 1, final_seats: 5, extra: 20 * MS };
    let write = Clients { flow: 0, count: 30, service: 5 * MS, work, pause: 0 };
    let read = Clients { flow: 1, count: 1, service: 5 * MS, work: Work::ONE, pause: 0 };
    let results = simulate(&mut QueueSet::new(0, queuing(2, 1, 200), 10), &[write, read], 5 * SECOND);
    assert!(results[&0].0.len() > 250 && results[&1].0.len() > 75, "{} {}", results[&0].0.len(), results[&1].0.len());
}

#[derive(Debug, Clone)]
enum Step {
    Arrive(u32, u32, u64, u64),
    Finish(usize),
    Cancel(usize),
    Limit(u32),
    Queues(u32),
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        4 => (1u32..6, 0u32..6, 0u64..20, any::<u64>()).prop_map(|(i, f, e, h)| Step::Arrive(i, f, if f == 0 { 0 } else { e }, h)),
        3 => any::<usize>().prop_map(Step::Finish),
        1 => any::<usize>().prop_map(Step::Cancel),
        1 => (0u32..12).prop_map(Step::Limit),
        1 => (0u32..6).prop_map(Step::Queues),
    ];
    proptest::collection::vec((0u64..10, step), 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever happens in whatever order: seats are neither lost nor invented, and in the end all is idle.
    #[test]
    fn seats_are_conserved(steps in steps()) {
        let mut now = 0;
        let mut limit = 5;
        let mut discipline = queuing(4, 2, 5);
        let mut set = QueueSet::<u64, u64>::new(0, discipline, limit);
        let mut all = Vec::new();
        for (time, step) in steps {
            now += time;
            match step {
                Step::Arrive(initial_seats, final_seats, extra, hash) => {
                    let work = Work { initial_seats, final_seats, extra };
                    let idle = set.is_idle() && set.totals().seats_in_use == 0;
                    match set.arrive(now, work, hash, hash) {
                        Admission::Execute(ticket) | Admission::Wait(ticket) => all.push(ticket),
                        Admission::Reject(_) => prop_assert!(!idle || limit == 0),
                    }
                }
                Step::Finish(which) if !all.is_empty() => {
                    let which = which % all.len();
                    if set.requests.get(all[which]).unwrap().started.is_some() {
                        set.finish(now, all.swap_remove(which));
                    }
                }
                Step::Cancel(which) if !all.is_empty() => {
                    let which = which % all.len();
                    if set.cancel(now, all[which]) == Cancelled::WhileWaiting {
                        all.swap_remove(which);
                    }
                }
                Step::Limit(new) => {
                    limit = new;
                    set.configure(now, discipline, limit, limit);
                }
                Step::Queues(queues) => {
                    discipline = if queues == 0 { Discipline::Reject } else { queuing(queues, 1, 5) };
                    set.configure(now, discipline, limit, limit);
                }
                _ => {}
            }
            let totals = set.totals();
            prop_assert_eq!(totals.waiting as usize, set.queues().iter().map(Queue::len).sum::<usize>());
            prop_assert_eq!(set.active_queues as usize, set.queues().iter().filter(|q| q.is_active()).count());
            prop_assert_eq!((totals.waiting + totals.executing) as usize, all.len());
        }
        set.configure(now, discipline, 100, 100);
        while let Some(ticket) = all.pop() {
            now += 1;
            set.finish(now, ticket);
        }
        set.tick(now + SECOND);
        prop_assert!(set.is_idle());
        let totals = set.totals();
        prop_assert_eq!((totals.seats_in_use, totals.seats_waiting), (0, 0));
        prop_assert!(set.queues().iter().all(|q| q.seats_in_use == 0 && q.max_seats == 0));
    }
}
