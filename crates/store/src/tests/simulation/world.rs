//! One schedule: lives of a process on one disk, with clients, faults and time, all of which follow from a seed.

use super::clients::{RESOURCES, ROOT, Site, Texts};
use super::executor::Executor;
use super::model::{Counts, Model};
use crate::cache::{Hub, HubOptions, Past, ResourceCache};
use crate::embedded::Writer;
use crate::embedded::fault::FaultyDisk;
use crate::hub::WatchLimits;
use crate::offload::Offload;
use crate::random::Random;
use crate::{EmbeddedOptions, EmbeddedStore, HistoryLimits, KeyRange, Store, Watch, WatchRequest};
use futures::Stream;
use kubelith_meta::time::TestClock;
use kubelith_meta::{Duration as Span, Time};
use std::pin::{Pin, pin};
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::Instant;

/// When the clock begins.
const START: Time = Time::from_unix(1_000_000);
/// Turns that a future which nobody competes with may take.
const DRIVEN_TURNS: usize = 10_000;
/// Turns after which everything must have come to rest.
const RESTING_TURNS: usize = 100_000;

/// Seeds from here on are of small worlds, below of full ones: what a seed of old means stays.
pub const SMALL: u64 = 1_000_000;

/// How much happens in a world. Small ones are for trying very many: most of the time goes into commits and openings of the store.
#[derive(Debug, Clone, Copy)]
struct Size {
    lives: usize,
    /// Things that happen in a life, beyond a few; and in the last one.
    steps: usize,
    last_steps: usize,
    least_steps: usize,
    writers: u64,
    writes: usize,
    reads: usize,
    /// Of each cache.
    watches: u64,
}

impl Size {
    const FULL: Size =
        Size { lives: 3, steps: 100, last_steps: 150, least_steps: 20, writers: 3, writes: 8, reads: 4, watches: 2 };
    const SMALL: Size =
        Size { lives: 2, steps: 24, last_steps: 24, least_steps: 8, writers: 2, writes: 3, reads: 2, watches: 1 };

    fn of(seed: u64) -> Size {
        if seed < SMALL { Size::FULL } else { Size::SMALL }
    }
}

/// Numbers of those that draw on their own.
mod part {
    pub const SCHEDULE: u64 = 1;
    pub const DISK: u64 = 2;
    pub const CLIENTS: u64 = 100;
}

#[derive(Debug)]
pub struct Outcome {
    pub violations: Vec<String>,
    pub counts: Counts,
    /// Stands for all that happened: the same for the same seed.
    pub fingerprint: u64,
}

pub struct World {
    seed: u64,
    size: Size,
    random: Random,
    executor: Executor,
    model: Arc<Mutex<Model>>,
    clock: Arc<TestClock>,
    /// The furthest that the clock ever was, in milliseconds.
    latest: u64,
    disk: FaultyDisk,
}

/// How a life of the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The machine loses power: what was not synced may be lost, torn or in another order.
    PowerLoss,
    /// The process is killed: what it wrote is there.
    Kill,
    Close,
    /// It does not: everything comes to rest.
    Rest,
}

/// A process that runs.
struct Life {
    site: Site,
    writer: Option<Writer>,
    /// When it wrote last.
    wrote: Instant,
    /// Hears of all changes as soon as they can be heard of.
    observer: Watch,
}

impl Life {
    /// How many wait for the writer, and whether it does something without them.
    fn waits(&self) -> (usize, bool) {
        let (waiting, timeout) = self.writer.as_ref().map(Writer::waits).unwrap_or_default();
        (waiting, timeout.is_some_and(|timeout| self.wrote.elapsed() >= timeout))
    }
}

impl World {
    pub async fn run(seed: u64) -> Outcome {
        let mut world = World {
            seed,
            size: Size::of(seed),
            random: Random::new(seed, part::SCHEDULE),
            executor: Executor::default(),
            model: Arc::default(),
            clock: Arc::new(TestClock::new(START)),
            latest: 0,
            disk: FaultyDisk::new(),
        };
        world.turn_clock(0);
        // Making a store takes as long as all that a small world does with it.
        if seed >= SMALL && !world.random.one_in(8) {
            world.disk = made();
        }
        let lives = 1 + world.random.below(world.size.lives) as u64;
        for life in 0..lives {
            let ending = match life + 1 == lives {
                true => Ending::Rest,
                false => world.random.pick(&[Ending::PowerLoss, Ending::PowerLoss, Ending::Kill, Ending::Close]),
            };
            world.live(life, ending).await;
            if !world.model().violations.is_empty() {
                break;
            }
        }
        let mut model = world.model();
        model.check();
        let counts = Counts { lives, ..model.counts };
        let fingerprint = counts.events ^ counts.writes << 16 ^ counts.reads << 32 ^ world.executor.turns() << 40;
        Outcome { violations: std::mem::take(&mut model.violations), counts, fingerprint }
    }

    fn model(&self) -> std::sync::MutexGuard<'_, Model> {
        self.model.lock().expect("no panic while the model is locked")
    }

    fn violate(&self, what: String) {
        self.model().violate(what);
    }

    async fn live(&mut self, number: u64, ending: Ending) {
        self.model().counts.lives += 1;
        // Sometimes the plug is pulled while the store is being opened.
        if self.random.one_in(8) {
            self.disk.set_fuse(self.random.below(12) as u64);
        }
        let mut opened = self.open(number).await;
        if opened.is_none() && self.disk.is_dead() {
            self.next_disk(Ending::PowerLoss);
            opened = self.open(number).await;
        }
        let Some(mut life) = opened else { return };
        self.start(&life.site);
        let Size { steps, last_steps, least_steps, .. } = self.size;
        let budget = least_steps + self.random.below(if ending == Ending::Rest { last_steps } else { steps });
        let mut is_over = false;
        for _ in 0..budget {
            self.step(&mut life).await;
            is_over = life.writer.is_none() || self.disk.is_dead();
            if is_over {
                break;
            }
        }
        let ending = match (ending, is_over) {
            (Ending::Close | Ending::Rest, true) => Ending::PowerLoss,
            (ending, _) => ending,
        };
        match ending {
            Ending::Rest => self.rest(&mut life).await,
            Ending::Close => {
                let store = life.site.store.clone();
                self.executor.spawn(async move { store.close().await });
                self.settle(&mut life).await;
                if life.writer.is_some() {
                    self.violate("the store does not close".into());
                }
            }
            Ending::PowerLoss | Ending::Kill => {}
        }
        self.executor.kill();
        self.model().died();
        drop(life);
        self.next_disk(ending);
        if is_over && ending == Ending::PowerLoss {
            // Whatever was acknowledged is looked at once more.
            drop(self.open(number).await);
        }
    }

    fn next_disk(&mut self, ending: Ending) {
        let disk = match ending {
            Ending::PowerLoss => self.disk.crash(&mut || self.random.draw()),
            Ending::Kill | Ending::Close | Ending::Rest => self.disk.kill(),
        };
        self.disk = disk;
    }

    /// Opens the store and looks at all that it has.
    async fn open(&mut self, life: u64) -> Option<Life> {
        let history = HistoryLimits { age: Duration::from_secs(5), bytes: self.random.pick(&[4 << 10, 1 << 20]) };
        let options = EmbeddedOptions {
            history,
            cache_bytes: self.random.pick(&[16 << 10, 4 << 20]),
            reserve_bytes: 0,
            clock: self.clock.clone(),
            ..EmbeddedOptions::new("")
        };
        let watches = WatchLimits {
            queued_bytes: self.random.pick(&[4 << 10, 16 << 20]),
            queued_events: self.random.pick(&[3, 10_000]),
            join_distance: self.random.pick(&[2, 1_000]),
        };
        let disk = Arc::new(self.disk.clone());
        let (store, writer) = match EmbeddedStore::assemble(disk, options, Offload::InPlace, watches) {
            Ok(opened) => opened,
            Err(error) => {
                if !self.disk.is_dead() {
                    self.violate(format!("the store cannot be opened: {error}"));
                }
                return None;
            }
        };
        let site = Site { store, model: self.model.clone(), clock: self.clock.clone(), life };
        let Ok(observer) = drive(self.look(&site)).await else {
            if !self.disk.is_dead() {
                self.violate("the store cannot be read".into());
            }
            return None;
        };
        Some(Life { site, writer: Some(writer), wrote: Instant::now(), observer })
    }

    /// Clients come, and go on while the writer waits for the disk.
    fn start(&mut self, site: &Site) {
        let executor = self.executor.clone();
        let random = Mutex::new(Random::new(self.seed, part::DISK + site.life));
        self.disk.meanwhile(move || {
            let mut random = random.lock().expect("no panic while locked");
            for _ in 0..random.below(4) {
                executor.step(&mut random);
            }
        });
        self.start_clients(site);
    }

    /// Reads what the store has and holds it against what is known.
    async fn look(&self, site: &Site) -> crate::Result<Watch> {
        let stats = site.store.stats().await?;
        let mut watch = site.store.watch(WatchRequest::new(KeyRange::all(), stats.compacted)).await?;
        let mut reached = stats.compacted;
        while reached < stats.revision {
            watch.control().request_progress();
            match watch.next().await {
                Some(Ok(batch)) => {
                    batch.events.iter().for_each(|event| site.model().observe_event(event));
                    reached = batch.revision;
                }
                other => {
                    site.model().violate(format!("the past cannot be read: {other:?}"));
                    break;
                }
            }
        }
        site.model().reopened(stats.revision.0);
        let all = site.store.range(crate::RangeRequest::new(KeyRange::all())).await?;
        let items = all.items.iter().map(|kv| {
            let text = super::model::text;
            (text(&kv.key), kv.mod_revision.0, text(&kv.value))
        });
        let list = super::model::Listed {
            what: "the store",
            prefix: String::new(),
            revision: all.revision.0,
            items: items.collect(),
        };
        site.model().listed(list, 0);
        Ok(watch)
    }

    fn start_clients(&mut self, site: &Site) {
        let base = part::CLIENTS + 20 * site.life;
        let random = |part: u64| Random::new(self.seed, base + part);
        let size = self.size;
        for client in 0..size.writers {
            self.executor.spawn(site.clone().write(client, random(client), size.writes));
        }
        self.executor.spawn(site.clone().list(random(5), size.reads));
        self.executor.spawn(site.clone().watch(random(6)));
        self.executor.spawn(serve_cached(site.clone(), self.executor.clone(), self.seed, base, size));
    }

    /// One thing happens.
    async fn step(&mut self, life: &mut Life) {
        let (waiting, is_due) = life.waits();
        match self.random.below(100) {
            0..4 => self.fault(),
            4..12 => {
                let millis = 1 + self.random.below(400) as u64;
                self.pass(Duration::from_millis(millis)).await;
            }
            12 => self.pass(Duration::from_secs(11)).await,
            13..35 if waiting > 0 || is_due => self.write(life, waiting),
            _ if self.executor.step(&mut self.random) => {}
            _ if waiting > 0 || is_due => self.write(life, waiting),
            _ => self.pass(Duration::from_millis(200)).await,
        }
    }

    fn write(&mut self, life: &mut Life, waiting: usize) {
        let requests = if waiting == 0 { 0 } else { 1 + self.random.below(waiting) };
        life.wrote = Instant::now();
        life.writer = life.writer.take().and_then(|writer| writer.step(requests));
        if !self.disk.is_dead() {
            self.observe(life);
        }
    }

    /// Takes what can be heard of by now.
    fn observe(&self, life: &mut Life) {
        let mut context = Context::from_waker(Waker::noop());
        let mut silent = 0;
        while silent < 3 {
            match Pin::new(&mut life.observer).poll_next(&mut context) {
                Poll::Pending => silent += 1,
                Poll::Ready(Some(Ok(batch))) => {
                    batch.events.iter().for_each(|event| self.model().observe_event(event));
                }
                Poll::Ready(_) => return,
            }
        }
    }

    fn fault(&mut self) {
        self.model().counts.faults += 1;
        match self.random.below(12) {
            0 | 1 => self.disk.set_fuse(self.random.below(40) as u64),
            2 => self.disk.fail_syncs(),
            3..6 => self.disk.set_silent_capacity(Some(self.disk.used() + 4096 * self.random.below(8) as u64)),
            6..9 => self.heal(),
            9 => self.turn_clock(30_000),
            10 => self.turn_clock(-20_000),
            _ => self.turn_clock(3_000),
        }
    }

    fn heal(&self) {
        self.disk.set_silent_capacity(None);
        self.disk.heal_syncs();
    }

    /// The clock of the machine jumps.
    fn turn_clock(&mut self, millis: i64) {
        self.clock.advance(Span::from_millis(millis));
        let now = crate::limits::now_millis(&*self.clock);
        self.latest = self.latest.max(now);
        let mut model = self.model();
        model.now = now;
        if millis < 0 {
            model.went_back();
        }
    }

    async fn pass(&mut self, time: Duration) {
        tokio::time::advance(time).await;
        self.turn_clock(time.as_millis() as i64);
    }

    /// Lets everybody go on until nobody has anything to do.
    async fn settle(&mut self, life: &mut Life) {
        for _ in 0..RESTING_TURNS {
            if self.executor.step(&mut self.random) {
                continue;
            }
            match life.waits() {
                (0, false) => return,
                (waiting, _) => self.write(life, waiting),
            }
        }
        self.violate("there is no rest".into());
    }

    /// No more faults: in the end all is answered, delivered and expired.
    async fn rest(&mut self, life: &mut Life) {
        self.heal();
        self.disk.clear_fuse();
        // Until every lifetime is over, also those that were counted before the clock went back.
        let end = self.latest + 60_000;
        while life.site.now() < end {
            self.settle(life).await;
            self.pass(Duration::from_secs(5)).await;
        }
        self.settle(life).await;
        match life.writer {
            // A sync failed before the rest began.
            None => {}
            Some(_) => self.model().rest(),
        }
    }
}

/// A disk with a store that was made and closed, and has nothing in it. Copies share what nobody changes.
fn made() -> FaultyDisk {
    static MADE: LazyLock<FaultyDisk> = LazyLock::new(|| {
        let disk = FaultyDisk::new();
        let options =
            EmbeddedOptions { reserve_bytes: 0, clock: Arc::new(TestClock::new(START)), ..EmbeddedOptions::new("") };
        let store = Arc::new(disk.clone());
        drop(EmbeddedStore::assemble(store, options, Offload::InPlace, WatchLimits::default()).expect("a good disk"));
        disk.kill()
    });
    MADE.copy()
}

/// The caches, and those who use them.
async fn serve_cached(site: Site, executor: Executor, seed: u64, base: u64, size: Size) {
    let random = |part: u64| Random::new(seed, base + part);
    let options = HubOptions { past: Past::Replayed, ..HubOptions::new(ROOT) };
    let store: Arc<dyn Store> = Arc::new(site.store.clone());
    let Ok((hub, feed)) = Hub::assemble(store, options, Offload::InPlace).await else { return };
    executor.spawn(feed);
    let mut caches: Vec<Arc<ResourceCache>> = Vec::new();
    for resource in RESOURCES {
        match hub.register(resource, None, Arc::new(Texts)).await {
            Ok(cache) => caches.push(cache),
            Err(_) => return,
        }
    }
    executor.spawn(site.clone().read_cached(hub.clone(), caches.clone(), random(8), size.reads));
    for (i, (resource, cache)) in RESOURCES.into_iter().zip(caches).enumerate() {
        for watch in 0..size.watches {
            let random = random(9 + 3 * watch + i as u64);
            executor.spawn(site.clone().watch_cached(hub.clone(), resource, cache.clone(), random));
        }
    }
}

/// Runs a future with which nobody competes.
async fn drive<T>(future: impl Future<Output = crate::Result<T>>) -> crate::Result<T> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..DRIVEN_TURNS {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return done;
        }
    }
    Err(crate::StoreError::Unavailable("it never ends".into()))
}
