use super::*;
use proptest::prelude::*;

fn member(nominal: u32, min: u32, max: u32, needed: u32) -> Member {
    let demand = Demand { high_watermark: needed, smoothed: needed.into(), ..Demand::default() };
    Member { limits: Limits { nominal, min, max }, exempt: false, demand, current: nominal }
}

#[test]
fn demand_rises_at_once_and_falls_slowly() {
    let mut demand = Demand::default();
    demand.update(Moments { seconds: 10.0, average: 8.0, deviation: 2.0, max: 12.4 });
    assert_eq!((demand.smoothed, demand.high_watermark), (10.0, 12));
    demand.update(Moments { seconds: 10.0, average: 0.0, deviation: 0.0, max: 0.0 });
    assert_eq!((demand.smoothed, demand.high_watermark), (9.77, 0));
    let before = demand;
    demand.update(Moments { seconds: 0.0, average: 5.0, deviation: 5.0, max: 3.0 });
    assert_eq!((demand.smoothed, demand.high_watermark), (before.smoothed, 3));
}

#[test]
fn the_busy_borrow_from_the_idle() {
    // Both have 50; one lends up to 40 and is idle, the other could use a hundred.
    let adjusted = adjust(&[member(50, 10, 100, 0), member(50, 50, 100, 100)]);
    assert_eq!(adjusted.current, [10, 90]);
    // Nobody needs anything: each has at least its minimum, and all is given out.
    let adjusted = adjust(&[member(50, 10, 100, 0), member(50, 10, 100, 0)]);
    assert_eq!(adjusted.current, [50, 50]);
    // The borrower's bound holds.
    let adjusted = adjust(&[member(50, 10, 100, 0), member(50, 50, 60, 100)]);
    assert_eq!(adjusted.current, [40, 60]);
    // The lender needs its own back.
    let adjusted = adjust(&[member(50, 10, 100, 50), member(50, 50, 100, 200)]);
    assert_eq!(adjusted.current, [50, 50]);
}

#[test]
fn exempt_work_is_taken_first() {
    let exempt = |needed| Member { exempt: true, ..member(0, 0, 100, needed) };
    // All is taken: minimums.
    assert_eq!(adjust(&[exempt(80), member(50, 20, 100, 50), member(50, 20, 100, 50)]).current, [80, 20, 20]);
    // Half of what is needed above the minimums is left.
    assert_eq!(adjust(&[exempt(30), member(50, 20, 100, 50), member(50, 20, 100, 50)]).current, [30, 35, 35]);
    assert_eq!(adjust(&[exempt(0)]).current, [0]);
    assert_eq!(adjust(&[]).current, [0; 0]);
}

#[test]
fn bounds_that_do_not_add_up_change_nothing() {
    let stuck = Member { current: 7, ..member(50, 10, 20, 0) };
    assert_eq!(adjust(&[stuck]).current, [7]);
}

proptest! {
    #[test]
    fn allocations_add_up_within_their_bounds(
        classes in proptest::collection::vec((0u32..50, 0u32..200, 0.0f64..300.0), 1..8),
        part in 0.0f64..1.0,
    ) {
        let classes: Vec<Class> = classes
            .into_iter()
            .map(|(low, more, target)| Class { low: low.into(), high: (low + more).into(), target: target.max(low.into()) })
            .collect();
        let low: f64 = classes.iter().map(|c| c.low).sum();
        let high: f64 = classes.iter().map(|c| c.high).sum();
        let total = low + (high - low) * part;
        let (seats, fraction) = allocate(total, &classes).unwrap();
        prop_assert!((seats.iter().sum::<f64>() - total).abs() < 1e-3, "{seats:?} {total}");
        for (class, seats) in classes.iter().zip(&seats) {
            prop_assert!(*seats >= class.low && *seats <= class.high);
            let fair = fraction * class.target();
            let at_bound = *seats == class.low && fair <= class.low || *seats == class.high && fair >= class.high;
            prop_assert!(at_bound || (seats - fair).abs() < 1e-6);
        }
    }
}
